"""Predictions against a mock: a project of one model, made-up rows, and what asking them gives."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from looping import looped
from mock_endpoint import ErrorBody, MockEndpoint, Reply

from adhere.client import ChatClient, Endpoint
from adhere.client.reply import Reply as ChatReply
from adhere.config import GlobalConfig, ModelConfig, Project, Retry
from adhere.config.load import parse
from adhere.data import Dataset, Row
from adhere.jsonio import read_json, write_json
from adhere.plan import Cell
from adhere.prediction import Mode, Places, Task, collect, make_task, mode_of, run_tasks, task_of
from adhere.progress import Progress

KEY = "sk-canary-0123456789"
OUTPUT_KEYS = [
    "content", "model_name", "reasoning", "finish_reason", "usage", "latency_s", "served_model",
    "system_fingerprint", "flags", "error",
]  # fmt: skip
LOCAL: dict[str, Any] = {"model_path": "org/m", "max_model_len": 40000, "modes": {"plain": {}}}
API: dict[str, Any] = {"api": {"base_url": "http://host/v1", "model": "org/m"}}


def project(root: Path = Path(), **models: dict[str, Any]) -> Project:
    config = {
        "datasets": {"d": "d.json", "e": "e.json"},
        "default_datasets": ["d"],
        "default_judge": "-",
        "results_root": "results",
    }
    parsed = {name: parse(ModelConfig, content, name) for name, content in models.items()}
    return Project(root, parse(GlobalConfig, config, "global"), parsed, {})


def mode(content: dict[str, Any], name: str | None = None) -> Mode:
    made = project(m=content)
    return mode_of(made, "m", name or made.models["m"].mode_names[0])


def api(name: str = "default", **sampling: Any) -> Mode:
    return mode({**API, "modes": {name: sampling}}, name)


def reply(
    content: str | None, reasoning: str | None = None, finish: str | None = "stop", **more: Any
) -> ChatReply:
    return ChatReply(content, reasoning, finish, None, None, None, **more)


def row(text: str, **more: Any) -> Row:
    constraint = {"evaluation": [{"type": "llm", "exec": f"Is {text} right?"}]}
    return {"input": [{"role": "user", "content": text}], "constraints": [constraint], **more}


def dataset(*rows: Row, name: str = "d") -> Dataset:
    return Dataset(name, Path(f"{name}.json"), rows, "0" * 64, len(rows))


def prints(*rows: Row, run: int = 1, made: Mode | None = None) -> tuple[str, ...]:
    places = Places(Path("p"), Path("j"), None)
    return make_task(Cell("m", "x", run, "d"), made or api(), dataset(*rows), places).fingerprints


MODEL: dict[str, Any] = {
    "api": {"base_url": "http://host/v1", "model": "org/m"},
    "modes": {"plain": {"max_tokens": 500}},
}


@dataclass
class Bench:
    """One project folder with model ``m`` behind a mock."""

    root: Path
    mock: MockEndpoint
    model: dict[str, Any] = field(default_factory=lambda: MODEL)
    concurrency: int = 4

    def task(self, rows: Sequence[Row], *, run: int = 1, name: str = "d") -> Task:
        """Write the dataset file and prepare a cell on it; ``d.first2`` limits it."""
        write_json(self.root / f"{name.partition('.')[0]}.json", list(rows))
        mode_name = next(iter(self.model["modes"]))
        return task_of(project(self.root, m=self.model), Cell("m", mode_name, run, name))

    async def ask(self, *tasks: Task, progress_title: str = "test") -> ChatClient:
        """Run tasks and return the client."""
        place = Endpoint(
            base_url=self.mock.base_url,
            owner="configs/m.yaml",
            api_key=KEY,
            concurrency=self.concurrency,
            retry=Retry(attempts=2, first_wait_s=0.001, max_wait_s=0.002, timeout_s=20.0),
        )
        async with ChatClient(place) as client:
            with Progress(progress_title, "items") as shown:
                await run_tasks(tasks, [client], shown)
        return client

    async def predict(self, rows: Sequence[Row], **cell: Any) -> list[Row]:
        """Run one cell and return the rows of its prediction file."""
        task = self.task(rows, **cell)
        await self.ask(task)
        collect(task, {"name": "api"})
        written: list[Row] = read_json(task.places.prediction)
        return written

    def run_config(self, run: int = 1) -> dict[str, Any]:
        mode_name = next(iter(self.model["modes"]))
        folder = self.root / "results" / "prediction" / f"m__{mode_name}" / f"run{run}"
        content: dict[str, Any] = read_json(folder / "run_config.json")
        return content


def benched(test: Callable[[Bench], Awaitable[None]]) -> Callable[[Path], None]:
    """Give a test a bench with a mock of its own."""

    def run(tmp_path: Path) -> None:
        @looped
        async def inner() -> None:
            async with MockEndpoint() as mock:
                await test(Bench(tmp_path, mock))

        inner()

    run.__name__ = test.__name__
    run.__doc__ = test.__doc__
    return run


def error(status: int, message: str = "No.", **fields: Any) -> Reply:
    return Reply(status=status, error=ErrorBody(message=message, **fields))


def kinds(rows: Sequence[Row]) -> list[str | None]:
    return [(r["output"]["error"] or {}).get("kind") for r in rows]
