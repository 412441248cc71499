"""Other evaluation frameworks on the same mock in the same run: ``python -m bench.peers``.

Each is installed, pinned, into an environment of its own below .venv-peers/. lm-eval and evalscope
predict only; inspect-ai predicts and has a model grade every answer, as we do. Times are those of
the mock, from the first request to the last answer, so that start-up counts for nobody.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from adhere.data import Row
from bench import workload
from bench.clients import LATENCY_MS
from bench.faults import FAULTY
from bench.figures import children_cpu, load
from bench.frameworks import CONNECTIONS, ITEMS, PEERS, QUESTIONS, Peer
from bench.mock import Behaviour, running
from bench.project import judge, make_project, model

_MOST_S = 400


@dataclass(frozen=True, slots=True)
class Run:
    """One run: what the mock counted, how it ended, how many items have a result.

    ``cpu_s`` is the processor time of all its processes, start-up included.
    """

    stats: dict[str, float]
    seconds: float
    cpu_s: float
    end: str
    items: int | None

    def line(self, name: str, does: str) -> str:
        """Return a row of the table."""
        requests = self.stats["distinct"]
        ideal = requests * LATENCY_MS / 1000 / CONNECTIONS
        share = ideal / self.stats["span_s"] if self.stats["span_s"] else 0
        kept = "?" if self.items is None else f"{self.items} of {ITEMS}"
        return (
            f"| {name} | {does} | {int(requests):,} | {100 * share:.1f} % | {self.seconds:.0f} s | "
            f"{1000 * self.cpu_s / max(requests, 1):.1f} ms | {kept} | {self.end} |"
        )


def _call(peer: Peer, behaviour: Behaviour, rows: Sequence[Row]) -> Run:
    with tempfile.TemporaryDirectory() as name, running(behaviour) as mock:
        folder = Path(name)
        lines = [{"question": row["input"][0]["content"], "answer": "none"} for row in rows]
        data = b"".join(orjson.dumps(line) + b"\n" for line in lines)
        (folder / "bench.jsonl").write_bytes(data)
        command = peer.command(mock, folder)
        inherited = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        environment = {
            **inherited,
            "HOME": str(folder),
            "HF_HUB_OFFLINE": "1",
            "HF_DATASETS_OFFLINE": "1",
            "OPENAI_API_KEY": "none",
            "MODEL_API_KEY": "none",
            "JUDGE_API_KEY": "none",
            "MODEL_BASE_URL": mock.base_url,
            "JUDGE_BASE_URL": mock.judge_url,
        }
        started, cpu = time.perf_counter(), children_cpu()
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [str(peer.bin / command[0]), *command[1:]],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
            try:
                said, _ = process.communicate(timeout=_MOST_S)
                end = f"exit {process.returncode}"
            except subprocess.TimeoutExpired:
                process.kill()
                said, _ = process.communicate()
                end = f"did not end within {_MOST_S} s"
        seconds = time.perf_counter() - started
        if process.returncode and "-v" in sys.argv:
            print(
                (folder / "log").read_text(errors="replace")[-3000:], said[-2000:], file=sys.stderr
            )
        cpu = children_cpu() - cpu
        return Run(mock.stats(), seconds, cpu, end, peer.kept(folder, said))


def _ours(behaviour: Behaviour, rows: Sequence[Row]) -> tuple[Run, Run]:
    """Run our workflow: only predictions, then judging them too."""
    runs = []
    for target in ("predictions", "all"):
        with tempfile.TemporaryDirectory() as name, running(behaviour) as mock:
            project = make_project(Path(name) / "project", concurrency=CONNECTIONS)
            retry = {"attempts": 5, "first_wait_s": 0.5, "max_wait_s": 10.0}
            project.change_global(retry=retry)
            project.write_yaml("configs/alpha.yaml", model(mock.base_url))
            project.write_yaml("judge_configs/judge.yaml", judge(mock.judge_url))
            project.write_dataset("bench", rows)
            cpu = children_cpu()
            seconds = project.snakemake(target)
            cpu = children_cpu() - cpu
            kept = len(project.json("results/prediction/alpha__plain/run1/bench.json"))
            runs.append(Run(mock.stats(), seconds, cpu, "exit 0", kept))
    return runs[0], runs[1]


def main() -> None:
    """Install what is not there; run everybody without and with faults; print both tables."""
    rows = workload.prompts(ITEMS, size=4000)
    for item, row in enumerate(rows):
        texts = [workload.question(f"[{item}/{number}]") for number in range(QUESTIONS)]
        row["constraints"] = [{"evaluation": [{"type": "llm", "exec": text}]} for text in texts]
    faulty = replace(FAULTY, latency_ms=LATENCY_MS)
    problems = {peer.name: peer.install() for peer in PEERS}
    for title, behaviour in (("without faults", Behaviour()), ("with faults", faulty)):
        print(f"\n### Peers {title} ({load()})\n")
        print(
            "| who | does | requests | share of the ideal | whole run | "
            "processor time a request | items kept | end |"
        )
        print("|---|---|---|---|---|---|---|---|", flush=True)
        predicted, judged = _ours(behaviour, rows)
        print(predicted.line("ours", "predict"))
        print(judged.line("ours", "predict and judge"), flush=True)
        for peer in PEERS:
            if problems[peer.name]:
                print(f"| {peer.name} | not installed: {problems[peer.name]} | | | | | | |")
            else:
                print(_call(peer, behaviour, rows).line(peer.name, peer.does), flush=True)


if __name__ == "__main__":
    main()
