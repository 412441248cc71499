"""Engine ``vllm`` (0.26 or newer): the command line and the version of ``vllm serve``.

Tests hold the command line only; the real server is exercised where GPUs are.
"""

import os
import shutil
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


def command(spec: EngineSpec, port: int, *, executable: str = "vllm") -> Sequence[str]:
    """Return the argument list of ``vllm serve``, ``spec.args`` verbatim at its end.

    Raises EngineError when ``spec.args`` sets what belongs to another field.
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
    return [executable, "serve", spec.model_path, *flat, *spec.args]


def executable(search_path: str) -> str:
    """Return the path of ``vllm``: beside this Python, else on ``search_path`` (as in PATH).

    Raises EngineError when it is not installed.
    """
    beside = str(Path(sys.executable).parent)
    found = shutil.which("vllm", path=os.pathsep.join([beside, search_path]))
    if found is None:
        raise EngineError(
            "engine vllm needs the command `vllm`, which is neither beside "
            f"{sys.executable} nor on PATH: install vLLM 0.26 or newer into this environment"
        )
    return found


def version(root: str) -> dict[str, str]:
    """Ask a running server for its version."""
    answer = _probe.get_json(root, "/version")
    found = answer.get("version") if isinstance(answer, dict) else None
    return {"vllm": str(found)}
