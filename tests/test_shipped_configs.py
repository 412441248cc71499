"""The configurations that are shipped: they load, and say what the vendors' table says."""

import csv
import itertools
import os
import re
import shutil
from pathlib import Path

import pytest

from adhere.config import ModelConfig, Project, Sampling, load_project
from adhere.config.sampling import NOT_SENT
from adhere.engines import EngineSpec, vllm
from adhere.plan import make_plan
from adhere.prediction.model import mode_of

ROOT = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("ADHERE_SHARED", ROOT.parent / "shared"))
TABLE = SHARED / "data" / "agentif" / "vendor_sampling_params.csv"

# Prompts of AgentIF reach about 20,000 tokens.
LONGEST_PROMPT = 20_000
PARAMETERS = ("temperature", "top_p", "top_k", "min_p", "presence_penalty", "repetition_penalty")
VERIFIED = "checked against"
# Rows of the table that were not read again; their values may only be shipped where the file says
# what they were checked against.
NOT_READ = "not re-read"

_QWEN35 = "Qwen3.5 (e.g. 27B/35B-A3B/4B)"
_GLM5 = "GLM-4.7 / GLM-5 / 5.1 / 5.2 / 5.3"
_V4 = "DeepSeek-V4 (Pro/Flash)"
_QWEN35_MODES = {
    "thinking": (_QWEN35, "thinking general"),
    "thinking-coding": ("Qwen3.5", "thinking precise coding"),
    "non-thinking": ("Qwen3.5", "non-thinking general"),
    "non-thinking-reasoning": ("Qwen3.5", "non-thinking reasoning"),
}
_GPT_OSS = ("gpt-oss-20b/120b", "thinking (reasoning_effort)")
_V4_MODES = dict.fromkeys(("thinking", "thinking-max", "non-thinking"), (_V4, "both"))
_LLAMA = {"non-thinking": ("Llama-3.x Instruct", "non-thinking")}

# Every mode of every shipped model → its row (model, mode) of the table. None: a mode that the
# table lacks and the file cites another source for.
ROWS: dict[str, dict[str, tuple[str, str] | None]] = {
    "DeepSeek-V3.2": dict.fromkeys(("thinking", "non-thinking"), ("DeepSeek-V3.2", "both")),
    "DeepSeek-V4-Flash": dict(_V4_MODES),
    "DeepSeek-V4-Pro": dict(_V4_MODES),
    "GLM-4.5-Air": dict.fromkeys(("thinking", "non-thinking"), ("GLM-4.5", "both")),
    "GLM-5.2": dict.fromkeys(("thinking", "non-thinking"), (_GLM5, "both")),
    "GLM-5.3": dict.fromkeys(("thinking", "thinking-high", "thinking-low"), (_GLM5, "both")),
    "Kimi-K3": dict.fromkeys(
        ("thinking", "thinking-high", "thinking-low"), ("Kimi-K3", "thinking")
    ),
    "Llama-3.1-8B-Instruct": dict(_LLAMA),
    "Llama-3.3-70B-Instruct": dict(_LLAMA),
    "MiMo-V2.5-Pro": dict.fromkeys(("thinking", "non-thinking"), ("MiMo-V2.5-Pro", "both")),
    "MiniMax-M2": {"thinking": ("MiniMax-M2", "thinking (interleaved)")},
    "MiniMax-M3": dict.fromkeys(
        ("thinking", "thinking-adaptive", "non-thinking"),
        ("MiniMax-M3", "enabled/adaptive/disabled"),
    ),
    "Mistral-Small-3.2-24B-Instruct-2506": {
        "non-thinking": ("Mistral-Small 3.x / Devstral", "non-thinking")
    },
    "Qwen3-30B-A3B-Instruct-2507": {"non-thinking": ("Qwen3-Instruct-2507", "non-thinking")},
    "Qwen3-30B-A3B-Thinking-2507": {"thinking": ("Qwen3-Thinking-2507", "thinking")},
    "Qwen3-32B": {
        "thinking": ("Qwen3 (2504: 0.6B-235B hybrid)", "thinking"),
        "non-thinking": ("Qwen3 (2504 hybrid)", "non-thinking"),
    },
    "Qwen3.5-27B": dict(_QWEN35_MODES),
    "Qwen3.5-35B-A3B": dict(_QWEN35_MODES),
    "Qwen3.5-4B": dict(_QWEN35_MODES),
    "Qwen3.6-27B": {
        "thinking": ("Qwen3.6", "thinking general"),
        "thinking-coding": None,
        "non-thinking": ("Qwen3.6", "non-thinking"),
    },
    "Qwen3.8-27B": {
        "thinking": ("Qwen3.8", "thinking"),
        "non-thinking": ("Qwen3.8", "non-thinking"),
    },
    "Seed-OSS-36B-Instruct": dict.fromkeys(
        ("thinking", "non-thinking"), ("Seed-OSS-36B-Instruct", "thinking (budget)")
    ),
    "gemma-3-27b-it": {"non-thinking": ("Gemma 3", "non-thinking")},
    "gemma-4-31B-it": dict.fromkeys(("thinking", "non-thinking"), ("Gemma 4", "thinking/non")),
    "gpt-oss-120b": dict.fromkeys(("thinking-low", "thinking-medium", "thinking-high"), _GPT_OSS),
    "gpt-oss-20b": dict.fromkeys(("thinking-low", "thinking-medium", "thinking-high"), _GPT_OSS),
}


@pytest.fixture(scope="module")
def project() -> Project:
    return load_project(ROOT)


@pytest.fixture(scope="module")
def table() -> dict[tuple[str, str], dict[str, str]]:
    if not TABLE.exists():
        pytest.skip("not on this machine: the vendors' table in the folder of shared data")
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {(row["model"], row["mode"]): row for row in csv.DictReader(file)}


def text_of(name: str) -> str:
    """Return the text of a model's file."""
    return (ROOT / "configs" / f"{name}.yaml").read_text(encoding="utf-8")


def local_models(project: Project) -> list[tuple[str, ModelConfig]]:
    """Return the real models that the workflow serves itself."""
    return [(n, m) for n, m in project.models.items() if m.is_local and not m.demo]


def test_real_models_are_shipped_disabled(project: Project) -> None:
    real = {name for name, model in project.models.items() if not model.demo}
    assert real == set(ROWS)
    assert len(real) >= 12 and "Qwen3.5-4B" in real
    assert not [name for name, model in project.models.items() if model.enabled]


def test_the_only_enabled_judge_is_the_default(project: Project) -> None:
    assert [name for name, judge in project.judges.items() if judge.enabled] == ["gpt-5.6-luna"]
    assert project.config.default_judge == "gpt-5.6-luna"
    assert project.judges["gpt-5.6-luna"].sampling() == {
        "temperature": 1.0,
        "reasoning_effort": "medium",
        "max_completion_tokens": 8192,
    }
    for name in ("gpt-4o-2024-11-20", "gpt-4o-mini"):
        assert project.judges[name].sampling() == {"temperature": 0.0}


@pytest.mark.parametrize("name", ROWS)
def test_all_modes_are_held_against_the_table(project: Project, name: str) -> None:
    assert project.models[name].mode_names == tuple(ROWS[name])


def given(text: str) -> float | None:
    """Return a cell's number; "0.95 (+top_k 40 code only)" is 0.95, a blank cell None."""
    match = re.match(r"-?[0-9.]+", text)
    return float(match[0]) if match else None


@pytest.mark.parametrize(
    ("name", "mode"), [(name, mode) for name, modes in ROWS.items() for mode in modes]
)
def test_sampling_is_the_vendors(
    project: Project, table: dict[tuple[str, str], dict[str, str]], name: str, mode: str
) -> None:
    key = ROWS[name][mode]
    if key is None:
        line = next(line for line in text_of(name).splitlines() if line.startswith(f"  {mode}:"))
        assert "read in" in line
        return
    row, sampling = table[key], project.models[name].modes[mode]
    for parameter in PARAMETERS:
        value = getattr(sampling, parameter)
        if value == NOT_SENT:
            # The vendor's API fixes it: the file says so, with the table's value.
            assert f"fixes temperature {row['temperature']} and top_p {row['top_p'][:4]}" in (
                " ".join(text_of(name).replace("#", " ").split())
            )
        else:
            assert value == given(row[parameter]), parameter
    assert sampling.max_tokens in (budgets_of(row), None)
    if row["confidence"].startswith(NOT_READ):
        assert VERIFIED in text_of(name)
    else:
        assert sampling.max_tokens == budgets_of(row)


def budgets_of(row: dict[str, str]) -> int | None:
    """Return the output budget that a row gives."""
    budget = given(row["max_output_tokens"])
    return int(budget) if budget is not None else None


@pytest.mark.parametrize("name", ROWS)
def test_modes_think_as_they_are_called(project: Project, name: str) -> None:
    model = project.models[name]
    for mode in model.mode_names:
        assert mode.startswith(("thinking", "non-thinking"))
        assert model.thinks(mode) is mode.startswith("thinking")
        budget = 32768 if model.thinks(mode) or name.startswith("Qwen3.5") else 16384
        assert mode_of(project, name, mode).budget == budget


@pytest.mark.parametrize("name", ROWS)
def test_modes_of_a_model_differ_in_what_is_sent(project: Project, name: str) -> None:
    sent = [mode_of(project, name, mode) for mode in project.models[name].mode_names]
    bodies = [repr(mode.payload([], 0, mode.budget)) for mode in sent]
    assert len(set(bodies)) == len(bodies)


def test_windows_hold_the_longest_prompt_and_the_budget(project: Project) -> None:
    for name, model in local_models(project):
        budgets = [mode_of(project, name, mode).budget for mode in model.mode_names]
        assert all(budget is not None for budget in budgets)
        assert (model.max_model_len or 0) >= max(b or 0 for b in budgets) + LONGEST_PROMPT, name


def test_thinking_is_parsed_where_a_model_thinks(project: Project) -> None:
    for name, model in local_models(project):
        thinks = any(model.thinks(mode) for mode in model.mode_names)
        assert ("--reasoning-parser" in model.vllm_args) is thinks, name


def test_commands_can_be_built(project: Project) -> None:
    for name, model in local_models(project):
        assert model.engine_name == "vllm"
        assert model.model_path is not None and model.max_model_len is not None
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", model.model_path), name
        spec = EngineSpec("vllm", model.model_path, name, model.max_model_len, args=model.vllm_args)
        vllm.command(spec, 8000)


def test_every_file_names_its_sources() -> None:
    for name in ROWS:
        head = text_of(name).partition("enabled:")[0]
        assert "Sampling" in head and all(line.startswith("#") for line in head.splitlines())


def test_keys_of_shipped_files_are_in_the_template(project: Project) -> None:
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    offered = {line.partition("=")[0] for line in lines if line and not line.startswith("#")}
    used = {m.api.api_key_env for m in project.models.values() if m.api is not None}
    used |= {judge.api_key_env for judge in project.judges.values()} - {None}
    assert used <= offered
    assert {"OPENAI_API_KEY", "OPENAI_BASE_URL", "MODELS_DIR"} <= offered
    for before, line in itertools.pairwise(lines):
        if line and not line.startswith("#"):
            assert line.endswith("=") and before.startswith("# "), line


# Templates

EXAMPLES = [
    ("configs", "local.example.yaml"),
    ("configs", "api.example.yaml"),
    ("configs", "recorded.example.yaml"),
    ("judge_configs", "judge.example.yaml"),
    ("judge_configs", "self-hosted.example.yaml"),
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the project's configuration."""
    for folder in ("configs", "judge_configs"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def test_all_templates_are_known() -> None:
    found = [*ROOT.glob("configs/*.example.*"), *ROOT.glob("judge_configs/*.example.*")]
    assert sorted((path.parent.name, path.name) for path in found) == sorted(EXAMPLES)


def test_templates_are_never_loaded(copy: Path, project: Project) -> None:
    for folder, name in EXAMPLES:
        (copy / folder / name).write_text("not: [valid")
    loaded = load_project(copy)
    assert (set(loaded.models), set(loaded.judges)) == (set(project.models), set(project.judges))


@pytest.mark.parametrize(("folder", "name"), EXAMPLES)
def test_a_copy_of_a_template_runs(copy: Path, folder: str, name: str) -> None:
    shutil.copyfile(copy / folder / name, copy / folder / "mine.yaml")
    project = load_project(copy)
    if folder == "configs":
        plan = make_plan(project, {})
        assert list(plan.modes) == ["mine"]
        for mode in plan.modes["mine"]:
            budgets = (16384, 32768) if name != "recorded.example.yaml" else (None,)
            assert mode_of(project, "mine", mode).budget in budgets
    else:
        assert make_plan(project, {}).judges == ("gpt-5.6-luna", "mine")
        assert project.judges["mine"].sampling()["temperature"] == 0.0


def test_local_template_shows_the_defaults(copy: Path) -> None:
    shutil.copyfile(copy / "configs" / "local.example.yaml", copy / "configs" / "mine.yaml")
    model = load_project(copy).models["mine"]
    assert model.modes["thinking"] == Sampling(enable_thinking=True)
    for mode in model.mode_names:
        sampling = model.mode(mode)
        line = next(
            line
            for line in (copy / "configs" / "mine.yaml").read_text().splitlines()
            if line.startswith(f"  {mode}:")
        )
        for key in ("temperature", "top_p", "max_tokens"):
            assert f"{key} {sampling[key]}" in line
