"""Local model servers, each owned by the job that uses it: ``vllm`` and ``llamacpp``."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from adhere.engines import llamacpp, vllm
from adhere.engines._spec import EngineSpec
from adhere.engines.server import LocalServer, PortTakenError, ReadyProbe, ServerInfo

__all__ = [
    "EngineSpec",
    "LocalServer",
    "PortTakenError",
    "ReadyProbe",
    "ServerInfo",
    "serve",
    "server_environment",
]

# Names of variables that hold secrets; TOKENIZERS_PARALLELISM and the like are none.
_SECRET = re.compile(r"SECRET|CREDENTIAL|PASSW(OR)?D|API_?KEY|(^|_)(KEY|TOKEN|PAT)$", re.IGNORECASE)
# vLLM loads models from a hub with this one.
_HUB_TOKEN = "HF_TOKEN"


def serve(spec: EngineSpec, log: Path) -> LocalServer:
    """Return the server for ``spec``, to be entered with ``with``; its output goes to ``log``.

    Raises EngineError when the engine or the model is not there, or an argument cannot be used.
    """
    env = server_environment(os.environ, spec)
    if spec.engine == "llamacpp":
        address_file = log.with_name(f"{log.name}.address.json")
        llamacpp.command(spec, 0, address_file)  # whatever is wrong is said before the start

        def llamacpp_command(port: int) -> Sequence[str]:
            return llamacpp.command(spec, port, address_file)

        ready = ReadyProbe(spec.served_model_name, llamacpp.version, spec.port, address_file)
        return LocalServer(llamacpp_command, env=env, log=log, ready=ready, held=spec.held)

    vllm.command(spec, 0)
    launcher = vllm.launcher(env.get("PATH", os.defpath))

    def vllm_command(port: int) -> Sequence[str]:
        return vllm.command(spec, port, launcher=launcher)

    ready = ReadyProbe(spec.served_model_name, vllm.version, spec.port)
    return LocalServer(vllm_command, env=env, log=log, ready=ready, held=spec.held)


def server_environment(environ: Mapping[str, str], spec: EngineSpec) -> dict[str, str]:
    """Return a server's environment: ``environ`` without secrets, then ``spec.env``.

    A variable counts as a secret by its name (API keys, tokens, passwords); HF_TOKEN stays for
    vllm, which may have to load the model from a hub.
    """
    kept = {
        name: value
        for name, value in environ.items()
        if not _SECRET.search(name) or (name == _HUB_TOKEN and spec.engine == "vllm")
    }
    return {**kept, **spec.env}
