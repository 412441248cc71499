"""A temporary project in which the real workflow runs against the mock."""

import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from adhere.jsonio import read_json, write_json

ROOT = Path(__file__).resolve().parents[1]
_PARTS = ("Snakefile", "rules", "scripts", "adhere", "envs", "profiles")
_KEY = "BENCH_API_KEY"


@dataclass(frozen=True, slots=True)
class Project:
    """A project folder with a copy of the workflow."""

    root: Path

    def write_yaml(self, name: str, content: Mapping[str, Any]) -> None:
        """Write one configuration file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(dict(content), sort_keys=False), encoding="utf-8")

    def change_global(self, **settings: Any) -> None:
        """Change keys of global.yaml."""
        content = yaml.safe_load((self.root / "configs/global.yaml").read_text(encoding="utf-8"))
        self.write_yaml("configs/global.yaml", content | settings)

    def write_dataset(self, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write a dataset to ``data/{name}.json``."""
        write_json(self.root / "data" / f"{name}.json", list(rows))

    def json(self, name: str) -> Any:
        """Read one JSON file."""
        return read_json(self.root / name)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start Snakemake in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", *arguments],
            cwd=self.root,
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.root), _KEY: "none"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def snakemake(self, *arguments: str, code: int = 0) -> float:
        """Run Snakemake to its end and return seconds; raises SystemExit for another exit code."""
        started = time.perf_counter()
        with self.start(*arguments) as process:
            text, _ = process.communicate()
        if process.returncode != code:
            shown = " ".join(arguments)
            raise SystemExit(f"bench: snakemake {shown}: exit {process.returncode}\n{text[-3000:]}")
        return time.perf_counter() - started


def make_project(root: Path, **settings: Any) -> Project:
    """Copy the workflow into ``root``; ``settings`` go into its global.yaml."""
    for part in _PARTS:
        source, target = ROOT / part, root / part
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    project = Project(root)
    base = {
        "datasets": {"bench": "data/bench.json"},
        "default_datasets": ["bench"],
        "repeats": 1,
        "default_judge": "judge",
        "checkers": {"isolation": "weak"},
    }
    project.write_yaml("configs/global.yaml", base | settings)
    (root / "judge_configs").mkdir(exist_ok=True)
    return project


def model(base_url: str, modes: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """Return the configuration of a model at an endpoint."""
    modes = modes or {"plain": {"temperature": 0.0, "max_tokens": 1000}}
    return {"api": {"base_url": base_url, "model": "m", "api_key_env": _KEY}, "modes": dict(modes)}


def judge(base_url: str, **fields: Any) -> dict[str, Any]:
    """Return the configuration of a judge."""
    return {"base_url": base_url, "model": "judge", "api_key_env": _KEY, **fields}
