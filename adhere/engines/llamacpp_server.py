"""llama.cpp's HTTP server in this process: ``python -m adhere.engines.llamacpp_server --help``.

It listens on the loopback interface only, speaks the OpenAI protocol under ``/v1``, and ends at
SIGTERM or SIGINT without waiting for requests in flight.
"""

import argparse
import os
import signal
from pathlib import Path
from types import FrameType
from typing import NoReturn

from adhere import jsonio

# Read when the OpenMP runtime is loaded, by the import below: threads that spin while they wait
# slow decoding down many times on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import xllamacpp

_LOG_WARNINGS = 2


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="llamacpp_server", description=__doc__)
    parser.add_argument("--model", required=True, help="the .gguf file")
    parser.add_argument("--alias", required=True, help="the name under which it is served")
    parser.add_argument("--port", type=int, default=0, help="0: a free one (default)")
    parser.add_argument("--slots", type=int, default=4, help="concurrent sequences")
    parser.add_argument("--context-per-slot", type=int, required=True, help="tokens")
    parser.add_argument("--threads", type=int, default=1, help="threads for decoding")
    parser.add_argument("--address-file", type=Path, help="gets the address as JSON, once it is up")
    return parser.parse_args()


def _parameters(arguments: argparse.Namespace) -> "xllamacpp.CommonParams":
    parameters = xllamacpp.CommonParams()
    parameters.model.path = arguments.model
    parameters.model_alias = {arguments.alias}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = arguments.port
    parameters.n_parallel = arguments.slots
    parameters.n_ctx = arguments.context_per_slot * arguments.slots
    parameters.cpuparams.n_threads = arguments.threads
    parameters.cpuparams_batch.n_threads = arguments.threads
    # Requests wait here while all slots are busy; each holds a thread.
    parameters.n_threads_http = max(4, 4 * arguments.slots)
    parameters.endpoint_metrics = True
    parameters.endpoint_props = True
    parameters.ui = False
    parameters.offline = True
    parameters.fit_params = False
    parameters.cache_ram_mib = 0
    parameters.cache_idle_slots = False
    # Pages open in a browser of this machine have no business here.
    parameters.cors_origins = "http://127.0.0.1"
    parameters.cors_origins_explicit = True
    parameters.verbosity = _LOG_WARNINGS
    return parameters


def _end(_signum: int, _frame: FrameType | None) -> NoReturn:
    # Deleting a server with requests in flight hangs; ending its process does not.
    os._exit(0)


def main() -> NoReturn:
    """Load the model, write the address, serve until a signal comes."""
    arguments = _arguments()
    for signum in (signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, _end)
    server = xllamacpp.Server(_parameters(arguments))
    address = server.listening_address
    print(f"serving {arguments.alias} at {address}", flush=True)
    if arguments.address_file is not None:
        jsonio.write_json(arguments.address_file, {"address": address})
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
