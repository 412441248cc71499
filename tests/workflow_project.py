"""A temporary copy of the project with models and judges that a mock endpoint answers."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml

from adhere.jsonio import read_json, write_json

ROOT = Path(__file__).resolve().parents[1]
KEY = "sk-canary-0123456789"
KEY_VARIABLE = "MOCK_API_KEY"
_PARTS = ("Snakefile", "rules", "scripts", "adhere", "envs", "profiles", "data/smoke")
_RETRY = {"attempts": 2, "first_wait_s": 0.01, "max_wait_s": 0.05, "timeout_s": 30.0}


@dataclass(frozen=True, slots=True)
class Called:
    """One call of Snakemake: its exit code and everything it printed."""

    code: int
    text: str

    @property
    def jobs(self) -> dict[str, int]:
        """Planned jobs by rule, from the table that Snakemake prints; empty without work."""
        table = re.search(r"Job stats:\njob +count\n-[- ]+\n((?:\w+ +\d+\n)+)", self.text)
        lines = table[1].split("\n") if table else []
        counts = {name: int(n) for name, n in (line.split() for line in lines if line)}
        counts.pop("total", None)
        return counts

    @property
    def idle(self) -> bool:
        """Whether Snakemake said that there is nothing to do."""
        return "Nothing to be done" in self.text


@dataclass(frozen=True, slots=True)
class WorkflowProject:
    """A project folder that Snakemake runs in."""

    root: Path

    def snakemake(
        self,
        *arguments: str,
        env: Mapping[str, str | None] | None = None,
        cores: int = 2,
        through: Sequence[str] = (),
    ) -> Called:
        """Run Snakemake to its end; ``env`` adds variables, None removes one.

        ``through`` is a command that starts it.
        """
        done = subprocess.run(
            [*through, *self.command(*arguments, cores=cores)],
            cwd=self.root,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=600,
        )
        return Called(done.returncode, done.stdout)

    def script(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one of the scripts to its end."""
        return subprocess.run(
            [sys.executable, f"scripts/{name}.py", *arguments],
            cwd=self.root,
            env=self.environment({"PYTHONPATH": "."}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start Snakemake in a process group of its own; what it prints is lost."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.root,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def command(self, *arguments: str, cores: int = 2) -> list[str]:
        """Return the command line of a call."""
        return [sys.executable, "-m", "snakemake", "--cores", str(cores), *arguments]

    def environment(self, changes: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """Return the environment of a call, the mock's key in it."""
        env = {**os.environ, KEY_VARIABLE: KEY, "OPENAI_BASE_URL": "", "OPENAI_API_KEY": ""}
        for name, value in (changes or {}).items():
            if value is None:
                env.pop(name, None)
            else:
                env[name] = value
        return env

    def plan(self, *arguments: str, env: Mapping[str, str | None] | None = None) -> Called:
        """Return a dry-run."""
        called = self.snakemake("-n", *arguments, env=env)
        assert called.code == 0, called.text
        return called

    def write_yaml(self, name: str, content: Mapping[str, Any]) -> None:
        """Write one configuration file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(dict(content), sort_keys=False), encoding="utf-8")

    def change_yaml(self, name: str, **changes: Any) -> None:
        """Change top-level keys of one configuration file."""
        content = yaml.safe_load((self.root / name).read_text(encoding="utf-8"))
        self.write_yaml(name, content | changes)

    def json(self, name: str) -> Any:
        """Read one JSON file of the project."""
        return read_json(self.root / name)

    def dataset(self) -> list[dict[str, Any]]:
        """Return the small dataset's rows."""
        rows: list[dict[str, Any]] = self.json("data/tiny.json")
        return rows

    def write_dataset(self, rows: list[dict[str, Any]]) -> None:
        """Replace the small dataset."""
        write_json(self.root / "data" / "tiny.json", rows)


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL a process and all its descendants, and wait until none is left."""
    parent = psutil.Process(process.pid)
    family = [*parent.children(recursive=True), parent]
    for member in family:
        with suppress(psutil.NoSuchProcess):
            member.kill()
    process.wait(timeout=30)
    psutil.wait_procs(family, timeout=30)


def tiny_dataset() -> list[dict[str, Any]]:
    """Three items, seven constraints: a code check, judge questions and a two-step chain."""
    code = "def check_following(response):\n    return len(response) > 0\n"
    llm = {"type": "llm", "exec": "Is it polite? Answer YES or NO.\n\n{response}"}
    items: list[dict[str, Any]] = []
    for number in range(3):
        constraints: list[dict[str, Any]] = [
            {"id": 0, "dimension": "unconditional", "type": ["formatting"], "is_meta": False},
            {"id": 1, "dimension": "conditional", "type": ["semantic"], "is_meta": False},
        ]
        constraints[0]["evaluation"] = [{"type": "code", "exec": code}]
        constraints[1]["evaluation"] = [dict(llm)]
        messages = [{"role": "user", "content": f"Question {number}: say something."}]
        items.append({"id": number, "input": messages, "constraints": constraints})
    chain = [
        {"type": "llm_conditional_check", "exec": "Does it apply? Answer YES or NO. {response}"},
        {"type": "llm", "exec": "Is it short? Answer YES or NO. {response}"},
    ]
    items[0]["constraints"].append(
        {"id": 2, "dimension": "conditional", "type": "resource", "evaluation": chain}
    )
    return items


def make_project(root: Path, base_url: str, judge_url: str) -> WorkflowProject:
    """Copy the project's workflow and give it one model with two modes, and one judge."""
    root.mkdir(parents=True)
    for part in _PARTS:
        source = ROOT / part
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, root / part, ignore=ignored)
        else:
            shutil.copy2(source, root / part)
    project = WorkflowProject(root)
    project.write_yaml(
        "configs/global.yaml",
        {
            "datasets": {"tiny": "data/tiny.json", "smoke": "data/smoke/eval.json"},
            "default_datasets": ["tiny"],
            "repeats": 2,
            "default_judge": "strict",
            "retry": _RETRY,
            "checkers": {"workers": 1},
        },
    )
    project.write_yaml("configs/alpha.yaml", model_config(base_url, "alpha-1"))
    project.write_yaml("judge_configs/strict.yaml", judge_config(judge_url))
    project.write_dataset(tiny_dataset())
    return project


def model_config(base_url: str, model: str) -> dict[str, Any]:
    """Return an API model with two modes."""
    return {
        "api": {"base_url": base_url, "model": model, "api_key_env": KEY_VARIABLE},
        "modes": {
            "thinking": {"temperature": 1.0, "enable_thinking": True, "max_tokens": 2000},
            "plain": {"temperature": 0.5, "seed": "per_item", "max_tokens": 1000},
        },
    }


def judge_config(judge_url: str) -> dict[str, Any]:
    """Return a judge at an endpoint."""
    return {
        "base_url": judge_url,
        "model": "judge-1",
        "api_key_env": KEY_VARIABLE,
        "temperature": 0.0,
    }
