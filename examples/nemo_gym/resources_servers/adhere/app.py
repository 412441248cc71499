"""The entry point that NeMo Gym starts: Adhere's verifier where Gym's configuration says.

Gym hands its resolved configuration over in two variables: the whole of it as YAML, and the name
of this server in it. ``project`` is a folder with configs/ and judge_configs/ (default: the project
that this file lies in); keys of judges are read from the environment or from its .env.
"""

import os
import sys
from pathlib import Path
from typing import Any

import yaml

from adhere import cli
from adhere.jobs import serve_verifier

ROOT = Path(__file__).resolve().parents[4]
# Keys of the server's configuration that are options of scripts/serve_verifier.py.
OPTIONS = ("host", "port", "judge", "reward", "policy", "concurrency", "queue")


def arguments(config: dict[str, Any]) -> list[str]:
    """Return the command line that a server's configuration stands for."""
    given = [
        f"--{key.replace('_', '-')}={config[key]}" for key in OPTIONS if config.get(key) is not None
    ]
    if config.get("mask_judge_failures"):
        given.append("--mask-judge-failures")
    return given


def main() -> None:
    """Serve."""
    name = os.environ["NEMO_GYM_CONFIG_PATH"]
    config = yaml.safe_load(os.environ["NEMO_GYM_CONFIG_DICT"])[name]["resources_servers"]["adhere"]
    os.chdir(Path(config["project"]).expanduser() if config.get("project") else ROOT)
    sys.argv = ["serve_verifier.py", *arguments(config)]
    cli.by_hand(serve_verifier.main)


if __name__ == "__main__":
    main()
