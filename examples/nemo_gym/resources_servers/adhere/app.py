"""The entry point that NeMo Gym starts: the verifier, served by the project's own Python.

Gym makes an environment for each server and installs nemo-gym there. Adhere has another one, since
the two pin different releases of the same packages (openai among them). So this file reads what Gym
hands over in two variables, the whole configuration as YAML and the name of this server in it, and
its process becomes scripts/serve_verifier.py under Adhere's Python.

``project`` is a folder with configs/ and judge_configs/ (default: the project that this file lies
in); keys of judges are read from the environment or from its .env.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[4]
SCRIPT = ROOT / "scripts" / "serve_verifier.py"
# Keys of the server's configuration that are options of the script.
OPTIONS = (
    "host",
    "port",
    "judge",
    "reward",
    "policy",
    "concurrency",
    "queue",
    "deadline_s",
    "max_body_mb",
    "max_held_mb",
)
# What Gym sets for its own servers; its configuration holds the keys of all of them.
GYM_ONLY = ("NEMO_GYM_CONFIG_DICT", "NEMO_GYM_CONFIG_PATH", "VIRTUAL_ENV")
PR_SET_PDEATHSIG = 1


def arguments(config: Mapping[str, Any]) -> list[str]:
    """Return the command line that a server's configuration stands for."""
    given = [
        f"--{key.replace('_', '-')}={config[key]}" for key in OPTIONS if config.get(key) is not None
    ]
    if config.get("mask_judge_failures"):
        given.append("--mask-judge-failures")
    return given


def serve(config: Mapping[str, Any]) -> NoReturn:
    """Become the verifier that a server's configuration describes."""
    python = Path(config.get("python") or ROOT / ".venv" / "bin" / "python").expanduser()
    project = Path(config.get("project") or ROOT).expanduser()
    if not python.is_file():
        sys.exit(
            f"error: python: there is no {python}: run `make setup` in {ROOT}, or let "
            "adhere_python name the Python of an environment in which Adhere is installed"
        )
    if not project.is_dir():
        sys.exit(f"error: project: {project} is no folder: adhere_project names one with configs/")
    os.chdir(project)
    # Gym ends its servers only where it is told to end: `gym eval reverify` leaves them behind.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    kept = {key: value for key, value in os.environ.items() if key not in GYM_ONLY}
    os.execve(python, [str(python), str(SCRIPT), *arguments(config)], kept)


def main() -> None:
    """Serve."""
    # The language of Gym's configuration, and in every environment that Gym makes.
    from omegaconf import OmegaConf

    everything = OmegaConf.create(os.environ["NEMO_GYM_CONFIG_DICT"])
    server = everything[os.environ["NEMO_GYM_CONFIG_PATH"]].resources_servers.adhere
    serve(OmegaConf.to_container(server, resolve=True))


if __name__ == "__main__":
    main()
