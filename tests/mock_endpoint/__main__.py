"""The mock as a command."""

import argparse
import asyncio
import ctypes
import signal
import sys
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from mock_endpoint.config import MockConfig
from mock_endpoint.server import MockEndpoint

_PR_SET_PDEATHSIG = 1


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


async def _serve(config: MockConfig, arguments: argparse.Namespace) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with MockEndpoint(config, port=arguments.port) as mock:
        if arguments.port_file is not None:
            part = arguments.port_file.with_name(arguments.port_file.name + ".part")
            part.write_text(f"{mock.port}\n")
            part.replace(arguments.port_file)
        print(mock.base_url, flush=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), arguments.max_seconds)


def _read_config(source: str | None) -> MockConfig:
    if source is None:
        return MockConfig()
    text = sys.stdin.read() if source == "-" else Path(source).read_text(encoding="utf-8")
    return MockConfig.model_validate_json(text)


def main() -> int:
    """Serve until SIGTERM, SIGINT, the parent's death or ``--max-seconds``."""
    parser = argparse.ArgumentParser(description="Serve a mock OpenAI-compatible endpoint.")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (default)")
    parser.add_argument("--port-file", type=Path, help="write the port number to this file")
    parser.add_argument("--max-seconds", type=float, default=600.0, help="stop after (600)")
    parser.add_argument("--config", help="JSON file of MockConfig fields; - reads stdin")
    arguments = parser.parse_args()
    _die_with_parent()
    try:
        config = _read_config(arguments.config)
    except (OSError, ValidationError) as error:
        print(f"--config {arguments.config}: {error}", file=sys.stderr)
        return 2
    asyncio.run(_serve(config, arguments))
    return 0


if __name__ == "__main__":
    sys.exit(main())
