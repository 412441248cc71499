"""Other evaluation frameworks: how each is installed, called, and asked what it kept."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson
import yaml

from bench.mock import Mock
from bench.project import ROOT

# Items, questions to a judge about each, and connections of every run.
ITEMS, QUESTIONS, CONNECTIONS = 300, 4, 64
_ENVIRONMENTS = ROOT / ".venv-peers"
_Command = Callable[[Mock, Path], list[str]]
_Kept = Callable[[Path, str], int | None]


@dataclass(frozen=True, slots=True)
class Peer:
    """A framework: what to install, how to call it, and how many items it has a result for."""

    name: str
    requirements: tuple[str, ...]
    does: str
    command: _Command
    kept: _Kept

    @property
    def bin(self) -> Path:
        """Folder of its commands."""
        return _ENVIRONMENTS / self.name / "bin"

    def install(self) -> str | None:
        """Install it where it is not; return why it cannot be, else None."""
        if (self.bin.parent / ".installed").exists():
            return None
        shutil.rmtree(self.bin.parent, ignore_errors=True)
        for command in (
            ["uv", "venv", "-q", "--python", sys.executable, str(self.bin.parent)],
            [
                "uv",
                "pip",
                "install",
                "-q",
                "--python",
                str(self.bin / "python"),
                *self.requirements,
            ],
        ):
            done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
            if done.returncode:
                return done.stderr.strip().splitlines()[-1]
        (self.bin.parent / ".installed").touch()
        return None


def _inspect(_mock: Mock, folder: Path) -> list[str]:
    script = str(Path(__file__).with_name("peer_inspect.py"))
    return [
        "python",
        script,
        f"{folder}/bench.jsonl",
        str(QUESTIONS),
        str(CONNECTIONS),
        str(folder),
    ]


def _lm_eval(mock: Mock, folder: Path) -> list[str]:
    task = {
        "task": "bench",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": f"{folder}/bench.jsonl"}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{question}}",
        "doc_to_target": "none",
        "generation_kwargs": {"max_gen_toks": 1000, "until": []},
        "metric_list": [{"metric": "exact_match"}],
    }
    (folder / "bench.yaml").write_text(yaml.safe_dump(task), encoding="utf-8")
    arguments = (
        f"model=m,base_url={mock.base_url}/chat/completions,num_concurrent={CONNECTIONS},"
        "max_retries=4,tokenized_requests=False"
    )
    return [
        *("lm_eval", "--model", "local-chat-completions", "--model_args", arguments),
        *("--include_path", str(folder), "--tasks", "bench", "--apply_chat_template"),
        *("--log_samples", "--output_path", str(folder / "out")),
    ]


def _evalscope(mock: Mock, folder: Path) -> list[str]:
    dataset = {"general_qa": {"local_path": str(folder), "subset_list": ["bench"]}}
    return [
        *("evalscope", "eval", "--model", "m", "--api-url", mock.base_url, "--api-key", "none"),
        *("--eval-type", "openai_api", "--datasets", "general_qa"),
        *("--dataset-args", orjson.dumps(dataset).decode()),
        *("--eval-batch-size", str(CONNECTIONS), "--work-dir", str(folder / "out")),
        *("--generation-config", '{"max_tokens": 1000, "retries": 4}', "--ignore-errors"),
    ]


def _lines(folder: Path, pattern: str) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in folder.glob(pattern))


PEERS = (
    Peer(
        "inspect-ai",
        ("inspect-ai==0.3.285", "openai==3.57.0"),
        "predict and judge",
        _inspect,
        lambda _folder, said: orjson.loads(said.splitlines()[-1])["items"] if said else None,
    ),
    Peer(
        "lm-eval",
        ("lm-eval[api]==0.4.13",),
        "predict",
        _lm_eval,
        lambda folder, _said: _lines(folder, "out/**/samples_*.jsonl"),
    ),
    Peer(
        "evalscope",
        ("evalscope==1.14.1",),
        "predict",
        _evalscope,
        lambda folder, _said: _lines(folder, "out/**/predictions/**/*.jsonl"),
    ),
)
