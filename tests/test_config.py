"""Reading and validating configuration files: defaults, and every kind of error by its message."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from adhere.config import (
    GlobalConfig,
    JudgeConfig,
    ModelConfig,
    Project,
    Sampling,
    load_project,
    reference,
)
from adhere.config.global_file import PolicyName
from adhere.config.judge_file import ParserName
from adhere.config.load import parse
from adhere.errors import ConfigError
from adhere.prediction.model import mode_of
from adhere.scoring import POLICIES
from adhere.verdict import PARSERS

ROOT = Path(__file__).resolve().parents[1]

GLOBAL = "datasets: {eval: data/eval.json}\ndefault_datasets: [eval]\ndefault_judge: j\n"
API = "api: {base_url: 'http://host:8000/v1', model: m}\n"
LOCAL = "model_path: org/model\nmax_model_len: 65536\nmodes:\n"
KEY = "sk-proj-4f9Zq81xY7"

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that makes a project folder; ``model`` is the text of configs/m.yaml."""

    def make(
        model: str | bytes | None = None, *, judge: str = "model: x\n", globals_: str = GLOBAL
    ) -> Path:
        for folder in ("configs", "judge_configs"):
            (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / "configs" / "global.yaml").write_text(globals_, encoding="utf-8")
        (tmp_path / "judge_configs" / "j.yaml").write_text(judge, encoding="utf-8")
        if model is not None:
            text = model if isinstance(model, bytes) else model.encode()
            (tmp_path / "configs" / "m.yaml").write_bytes(text)
        return tmp_path

    return make


def message_of(root: Path) -> str:
    """Return the message with which loading fails."""
    with pytest.raises(ConfigError) as caught:
        load_project(root)
    return str(caught.value)


def one_mode(fields: str) -> str:
    """Return a local model with one mode that holds ``fields``."""
    return f"{LOCAL}  m: {{{fields}}}\n"


# Errors: each message holds file and key, what was found and what is allowed.

WRONG = {
    "unknown key, top level": (
        API + "enabeld: true\n",
        ["configs/m.yaml: enabeld: unknown key (did you mean `enabled`?); allowed: api, "],
    ),
    "unknown key, mode": (
        one_mode("temprature: 1"),
        ["configs/m.yaml: modes.m.temprature: unknown key (did you mean `temperature`?)"],
    ),
    "unknown key, mode, lists that section's keys": (
        one_mode("colour: 1"),
        ["modes.m.colour: unknown key; allowed: enable_thinking, extra_body, frequency_penalty"],
    ),
    "unknown key, api": (
        "api: {base_ur: 'http://h/v1', model: m}\n",
        [
            "configs/m.yaml: api.base_ur: unknown key (did you mean `base_url`?)",
            "configs/m.yaml: api.base_url: required, and missing",
        ],
    ),
    "a key is never a field": (
        f"api: {{base_url: 'http://h/v1', model: m, api_key: {KEY}}}\n",
        ["configs/m.yaml: api.api_key: unknown key (did you mean `api_key_env`?)"],
    ),
    "text for a number": (
        one_mode("temperature: hot"),
        ["configs/m.yaml: modes.m.temperature: found 'hot': must be a number or `not_sent`"],
    ),
    "a word almost right": (
        one_mode("top_p: not_send"),
        ["top_p: found 'not_send': must be a number or `not_sent` (did you mean `not_sent`?)"],
    ),
    "bool for a number": (
        one_mode("temperature: true"),
        ["modes.m.temperature: found true: must be a number or `not_sent`"],
    ),
    "bool for a whole number": (
        "model_path: a\nmax_model_len: true\nmodes: {m: {}}\n",
        ["configs/m.yaml: max_model_len: found true: must be a whole number"],
    ),
    "number for bool": (
        API + "enabled: 1\n",
        ["configs/m.yaml: enabled: found 1: must be true or false"],
    ),
    "fraction for a whole number": (
        one_mode("top_k: 1.5"),
        ["modes.m.top_k: found 1.5: must be a whole number or `not_sent`"],
    ),
    "number for text": (
        "model_path: 7\nmax_model_len: 1\nmodes: {m: {}}\n",
        ["configs/m.yaml: model_path: found 7: must be text"],
    ),
    "temperature out of range": (
        one_mode("temperature: 10"),
        ["modes.m.temperature: found 10: must be at most 2 or `not_sent`"],
    ),
    "negative temperature": (
        one_mode("temperature: -0.1"),
        ["modes.m.temperature: found -0.1: must be at least 0 or `not_sent`"],
    ),
    "top_p of zero": (one_mode("top_p: 0"), ["top_p: found 0: must be above 0 or `not_sent`"]),
    "not a number": (one_mode("temperature: .nan"), ["temperature: found nan: must be finite"]),
    "infinite": (one_mode("repetition_penalty: .inf"), ["found inf: must be finite"]),
    "no tokens": (one_mode("max_tokens: 0"), ["modes.m.max_tokens: found 0: must be at least 1"]),
    "absurdly many tokens": (
        one_mode(f"max_tokens: {10**30}"),
        ["modes.m.max_tokens: found 1000000000000000000000000000000: must be at most 1000000000"],
    ),
    "unknown engine": (
        LOCAL + "  m: {}\nengine: vlm\n",
        ["engine: found 'vlm': must be `vllm` or `llamacpp` (did you mean `vllm`?)"],
    ),
    "port": (LOCAL + "  m: {}\nport: 70000\n", ["port: found 70000: must be at most 65535"]),
    "text for a section": ("api: http://h/v1\n", ["api: found text: must be `key: value` lines"]),
    "list for a section": (
        "model_path: a\nmax_model_len: 1\nmodes: [thinking]\n",
        ["configs/m.yaml: modes: found a list: must be `key: value` lines"],
    ),
    "nothing for a section": ("api:\n", ["configs/m.yaml: lacks `model_path`"]),
    "api and model_path": (
        API + "model_path: a\n",
        ["configs/m.yaml: has both `api` and `model_path`: keep one of them"],
    ),
    "none of the three": ("enabled: true\n", ["lacks `model_path`, `max_model_len`, `modes`"]),
    "one of the three": (
        "model_path: a\nmodes: {m: {}}\n",
        ["configs/m.yaml: lacks `max_model_len`: a local model needs"],
    ),
    "no modes": (
        "model_path: a\nmax_model_len: 1\nmodes: {}\n",
        ["configs/m.yaml: lacks `modes`"],
    ),
    "empty file": ("", ["configs/m.yaml: lacks `model_path`, `max_model_len`, `modes`"]),
    "only a comment": ("# nothing\n", ["configs/m.yaml: lacks `model_path`"]),
    "list as a file": ("- a\n- b\n", ["configs/m.yaml: found a list: must hold `key: value`"]),
    "text as a file": ("hello\n", ["configs/m.yaml: found a single value: must hold"]),
    "mode named no": (
        LOCAL + "  no: {}\n",
        ["configs/m.yaml: modes: the name False is not text (YAML reads no, off", "put it in quo"],
    ),
    "mode named by a number": (
        LOCAL + "  1.5: {}\n",
        ["configs/m.yaml: modes: the name 1.5 is not text: put it in quotes"],
    ),
    "number as a key": (API + "5: x\n", ["configs/m.yaml: the name 5 is not text: put it in quot"]),
    "mode with two lines": (LOCAL + "  a__b: {}\n", ["modes: mode name 'a__b' may hold letters"]),
    "mode with a line first": (LOCAL + "  _a: {}\n", ["modes: mode name '_a' may hold letters"]),
    "mode with a slash": (LOCAL + "  a/b: {}\n", ["modes: mode name 'a/b' may hold letters"]),
    "mode without a name": (LOCAL + "  '': {}\n", ["modes: mode name '' may hold letters"]),
    "mode not composed": (LOCAL + "  \u212b: {}\n", ["must be in Unicode's composed form (NFC)"]),
    "mode too long": (LOCAL + f"  {'a' * 121}: {{}}\n", ["must be at most 120 bytes long, is 121"]),
    "url without scheme": (
        "api: {base_url: 'host/v1', model: m}\n",
        ["api.base_url: found text: must begin with http://, https:// or ${NAME}"],
    ),
    "url with too much": (
        "api: {base_url: 'http://h/v1/chat/completions', model: m}\n",
        ["api.base_url: found text: must end with the version", "leave out /chat/completions"],
    ),
    "no model id": (
        "api: {base_url: 'http://h/v1', model: ''}\n",
        ["configs/m.yaml: api.model: found '': must not be empty"],
    ),
    "the request's own fields": (
        one_mode("extra_body: {n: 2, stream: true}"),
        ["modes.m.extra_body: the request's own fields n, stream cannot be set here"],
    ),
    "budget where it is not trimmed": (
        one_mode("extra_body: {max_tokens: 9}"),
        ["modes.m.extra_body: max_tokens cannot be set here"],
    ),
    "extra_body that JSON cannot hold": (
        one_mode("extra_body: {a: {b: [.nan]}}"),
        ["modes.m.extra_body: nan is not a number that JSON can hold"],
    ),
    "extra_body with a name that is no text": (
        one_mode("extra_body: {a: {1: 2}}"),
        ["modes.m.extra_body: the name 1 is not text"],
    ),
    "extra_body in itself": (
        one_mode("extra_body: &a {b: *a}"),
        ["configs/m.yaml: not valid YAML: line 4, column 19: a value contains itself"],
    ),
    "two switches": (
        one_mode("enable_thinking: true, extra_body: {chat_template_kwargs: {x: 1}}"),
        ["configs/m.yaml: modes.m: has both `enable_thinking` and `extra_body.chat_template"],
    ),
    "key twice": (
        API + "enabled: true\nenabled: false\n",
        ["configs/m.yaml: not valid YAML: line 3, column 1: key 'enabled' is given twice"],
    ),
    "key twice, further in": (
        one_mode("top_k: 1, top_k: 2"),
        ["configs/m.yaml: not valid YAML: line 4, column 17: key 'top_k' is given twice"],
    ),
    "tab": (
        "api:\n\tbase_url: x\n",
        ["configs/m.yaml: not valid YAML: line 2, column 1", "indent with blanks, not with tabs"],
    ),
    "unclosed bracket": ("api: {base_url: [\n", ["configs/m.yaml: not valid YAML: line 2"]),
    "two documents": ("a: 1\n---\nb: 2\n", ["expected a single document in the stream"]),
    "an alias of nothing": ("api: *x\n", ["line 1, column 6: found undefined alias 'x'"]),
    "a tag of Python's": (
        "a: !!python/object/apply:os.getcwd []\n",
        ["line 1, column 4: could not determine a constructor for the tag"],
    ),
    "a tag that does not fit": ("a: !!int b\n", ["line 1, column 4: not a valid int"]),
    "half a number": ("a: 0x_\n", ["line 1, column 4: not a valid int: put text in quotes"]),
    "a list as a key": ("[a]: x\n", ["configs/m.yaml: not valid YAML: line 1, column 1: a key"]),
    "control character": ("a: \x00\n", ["special characters are not allowed (character 4)"]),
    "nested without end": ("[" * 3000, ["configs/m.yaml: nested too deeply"]),
    "not UTF-8": (b"api: \xff\n", ["configs/m.yaml: not UTF-8: byte 6 cannot be read"]),
}


@pytest.mark.parametrize("case", WRONG)
def test_message_names_file_key_found_and_allowed(write: Write, case: str) -> None:
    model, expected = WRONG[case]
    message = message_of(write(model))
    for part in expected:
        assert part in message
    assert "Traceback" not in message
    assert KEY not in message


@pytest.mark.parametrize(
    "model",
    [
        f"api: {{base_url: 'http://h/v1', model: m, api_key_env: {KEY}}}\n",
        f"api: {{base_url: 'http://h/v1', model: m, api_key_env: [{KEY}]}}\n",
        f"api: {{base_url: 'http://h/v1', model: m, api_key_env: {{{KEY}: 1}}}}\n",
        "api: {base_url: 'http://h/v1', model: m, api_key_env: 4f9Zq81xY7}\n",
        f"api:\n  base_url: http://h/v1\n  api_key_env: {KEY}: x\n",
        f"api: {KEY}\n",
        f"api: {{base_url: 'http://user:{KEY}@h/v1', model: m}}\n",
        f"api: {{base_url: [{KEY}], model: m}}\n",
        f"api: {{base_url: 'http://h/v1', model: m, key: {KEY}}}\n",
    ],
)
def test_what_may_be_a_key_is_never_shown(write: Write, model: str) -> None:
    message = message_of(write(model))
    assert message.startswith("configs/m.yaml: ")
    assert "4f9Zq81xY7" not in message


def test_message_says_what_to_write_in_place_of_a_key_or_password(write: Write) -> None:
    model = f"api: {{base_url: 'http://h/v1', model: m, api_key_env: {KEY}}}\n"
    assert "name of an environment variable in capitals, such as OPENAI" in message_of(write(model))
    model = "api: {base_url: 'http://user:pw@h/v1', model: m}\n"
    message = message_of(write(model))
    assert "must hold no user name or password: use `api_key_env`" in message
    assert "pw" not in message.replace("password", "")


def test_problems_of_all_files_are_listed_at_once(write: Write) -> None:
    root = write(one_mode("temprature: 1, top_k: no"))
    (root / "configs" / "b.yaml").write_text("api: 1\n")
    (root / "configs" / "global.yaml").write_text(GLOBAL + "repeat: 3\n")
    (root / "judge_configs" / "j.yaml").write_text("temperature: 1\n")
    lines = message_of(root).splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        "configs/global.yaml",
        "configs/b.yaml",
        *2 * ["configs/m.yaml"],
        "judge_configs/j.yaml",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model: x\ntemprature: 1\n", "judge_configs/j.yaml: temprature: unknown key (did you me"),
        ("temperature: 1\n", "judge_configs/j.yaml: model: required, and missing"),
        ("model: x\nvotes: 0\n", "judge_configs/j.yaml: votes: found 0: must be at least 1"),
        ("model: x\nparser: nemo\n", "parser: found 'nemo': must be `adhere`, `upstream-2025` or"),
        (
            "model: x\nmax_tokens: 1\nmax_completion_tokens: 1\n",
            "judge_configs/j.yaml: has both `max_tokens` and `max_completion_tokens`: keep one",
        ),
        ("model: x\nlocal: {}\n", "judge_configs/j.yaml: `local` needs `model_path` and `max_mod"),
        ("model: x\nlocal: {slot: 1}\n", "local.slot: unknown key (did you mean `slots`?)"),
        (
            "model: x\nbase_url: http://h/v1\nlocal: {model_path: a, max_model_len: 1}\n",
            "judge_configs/j.yaml: has both `local` and `base_url`: keep one of them",
        ),
    ],
)
def test_wrong_judge(write: Write, text: str, expected: str) -> None:
    assert expected in message_of(write(judge=text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GLOBAL + "repeat: 3\n", "configs/global.yaml: repeat: unknown key (did you mean `repe"),
        (GLOBAL + "retry: {attempt: 3}\n", "retry.attempt: unknown key (did you mean `attempts`"),
        (GLOBAL + "retry: {timeout_s: 0}\n", "retry.timeout_s: found 0: must be above 0"),
        (GLOBAL + "checkers: {workers: -1}\n", "checkers.workers: found -1: must be at least 0"),
        (GLOBAL + "policy: adher\n", "policy: found 'adher': must be `adhere`, `upstream-2025` o"),
        (GLOBAL + "gpus: all\n", "gpus: found 'all': must be a list or `auto`"),
        (
            GLOBAL + "gpus: [-1, 2]\n",
            "gpus: found a list: '-1' is no device: write an index from 0",
        ),
        (GLOBAL + "gpus: ['a,b']\n", "gpus: found a list: 'a,b' is no device"),
        (GLOBAL + "gpus: [a, b, a]\n", "gpus: found a list: names a more than once"),
        (GLOBAL.replace("[eval]", "[]"), "default_datasets: found a list: must not be empty"),
        (GLOBAL.replace("[eval]", "[evl]"), "default_datasets: 'evl' is not in `datasets` (eval)"),
        (GLOBAL.replace("eval:", "2026:"), "datasets: the name 2026 is not text: put it in quote"),
        (GLOBAL.replace("eval:", "a/b:"), "datasets: name 'a/b' must not contain '/'"),
        (GLOBAL.replace("eval:", "e.first5:"), "must not end in .first<number>, which marks lim"),
        (
            GLOBAL.replace("eval", "run_config"),
            "datasets: name 'run_config' is taken by run_config.json",
        ),
        (
            GLOBAL.replace("judge: j", "judge: k"),
            "default_judge: there is no judge_configs/k.yaml (there are: j, rules-only)",
        ),
        ("", "configs/global.yaml: datasets: required, and missing"),
    ],
)
def test_wrong_global(write: Write, text: str, expected: str) -> None:
    assert expected in message_of(write(globals_=text))


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        ("{a: null}", "gpus: found `key: value` lines: must be a list or `auto`"),
        ("[null]", "gpus.0: found nothing: must be text"),
    ],
)
def test_what_fits_no_kind_is_told_once_and_where(write: Write, gpus: str, expected: str) -> None:
    message = message_of(write(globals_=GLOBAL + f"gpus: {gpus}\n"))
    assert message == f"configs/global.yaml: {expected}"


def test_missing_global(write: Write) -> None:
    root = write()
    (root / "configs" / "global.yaml").unlink()
    assert message_of(root) == "configs/global.yaml: no such file"


# Which files are configurations


def test_bom_is_no_content(write: Write) -> None:
    assert list(load_project(write(b"\xef\xbb\xbf" + API.encode())).models) == ["m"]


@pytest.mark.parametrize(
    ("name", "advice"), [("m.yml", "m.yaml"), ("m.YAML", "m.yaml"), ("global.yml", "global.yaml")]
)
def test_other_suffixes_are_refused_not_overlooked(write: Write, name: str, advice: str) -> None:
    root = write()
    (root / "configs" / name).write_text(API)
    assert message_of(root) == f"configs/{name}: rename it to {advice} (or .example.yaml)"


@pytest.mark.parametrize(
    "name",
    ["x.example.yaml", "x.example.yml", "x.EXAMPLE.yaml", ".x.yaml", ".#x.yaml", "README.md", "x"],
)
@pytest.mark.parametrize("folder", ["configs", "judge_configs"])
def test_what_is_never_loaded(write: Write, folder: str, name: str) -> None:
    root = write()
    (root / folder / name).write_text("[ neither YAML nor : valid\n")
    project = load_project(root)
    assert (list(project.models), list(project.judges)) == ([], ["j", "rules-only"])


def test_a_judge_may_be_named_global(write: Write) -> None:
    root = write()
    (root / "judge_configs" / "global.yaml").write_text("model: x\n")
    assert list(load_project(root).judges) == ["global", "j", "rules-only"]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("a,b", "must not contain ','"),
        ("a b ", "must not be empty, begin or end with a blank"),
        ("a{b}", "must not contain '{'"),
        ("a.first12", "must not end in .first<number>"),
        ("e\u0301", "must be in Unicode's composed form (NFC)"),
        ("a" * 121, "must be at most 120 bytes long, is 121"),
    ],
)
def test_names_that_cannot_be_part_of_a_path(write: Write, name: str, problem: str) -> None:
    root = write()
    (root / "configs" / f"{name}.yaml").write_text(API)
    assert problem in message_of(root)


def test_a_name_that_is_no_text(write: Write) -> None:
    root = write()
    try:
        (root / "configs" / "a\udcff.yaml").write_text(API)
    except OSError:
        pytest.skip("not on this machine: file names that are not UTF-8")
    assert "must be valid UTF-8" in message_of(root)
    message_of(root).encode()  # can be printed


def test_a_folder_that_looks_like_a_file(write: Write) -> None:
    root = write()
    (root / "configs" / "m.yaml").mkdir()
    assert message_of(root).startswith("configs/m.yaml: cannot be read: ")


def test_without_judges_there_is_no_default_judge(write: Write) -> None:
    root = write()
    shutil.rmtree(root / "judge_configs")
    assert "there is no judge_configs/j.yaml (there are: rules-only)" in message_of(root)


# Values


def load_one(root: Path) -> ModelConfig:
    """Return the only model of a project."""
    return load_project(root).models["m"]


THINKING = {"temperature": 1.0, "top_p": 0.95, "max_tokens": 32768}
PLAIN = {"temperature": 0.0, "top_p": 0.95, "max_tokens": 16384}


@pytest.mark.parametrize(
    ("mode", "fields", "expected"),
    [
        ("thinking", "", THINKING),
        ("Thinking-max", "", THINKING),
        ("non-thinking", "", PLAIN),
        ("default", "", PLAIN),
        ("default", "enable_thinking: true", {**THINKING, "enable_thinking": True}),
        ("thinking", "enable_thinking: false", {**PLAIN, "enable_thinking": False}),
        ("default", "temperature: 0.6", {**PLAIN, "temperature": 0.6}),
        ("default", "temperature: 1", {**PLAIN, "temperature": 1.0}),
        ("thinking", "max_tokens: 5, top_k: 0", {**THINKING, "max_tokens": 5, "top_k": 0}),
        ("default", "top_p: not_sent", {"temperature": 0.0, "max_tokens": 16384}),
        ("default", "temperature: not_sent, top_p: not_sent, max_tokens: not_sent", {}),
        ("default", "reasoning_effort: low", {**PLAIN, "reasoning_effort": "low"}),
        (
            "default",
            "extra_body: {a: [1, {b: x}]}",
            {**PLAIN, "extra_body": {"a": [1, {"b": "x"}]}},
        ),
    ],
)
def test_defaults_of_a_mode(
    write: Write, mode: str, fields: str, expected: dict[str, object]
) -> None:
    api = load_one(write(f"{API}modes: {{{mode}: {{{fields}}}}}\n"))
    assert api.mode(mode) == expected
    local = load_one(write(f"{LOCAL}  {mode}: {{{fields}}}\n"))
    assert local.mode(mode) == {**expected, "seed": "per_item"}


def test_every_parameter_can_be_left_out_of_the_request(write: Write) -> None:
    names = [
        name for name in Sampling.model_fields if name not in ("enable_thinking", "extra_body")
    ]
    fields = ", ".join(f"{name}: not_sent" for name in names)
    model = load_one(write(one_mode(fields)))
    assert model.mode("m") == {}
    project = load_project(write(one_mode(fields)))
    body = mode_of(project, "m", "m").payload([{"role": "user", "content": "x"}], 7, None)
    assert sorted(body) == ["messages", "model"]


def test_a_mode_without_fields_has_the_defaults(write: Write) -> None:
    assert load_one(write(LOCAL + "  thinking:\n")).mode("thinking")["max_tokens"] == 32768


def test_an_api_model_without_modes_has_one(write: Write) -> None:
    model = load_one(write(API))
    assert (model.mode_names, model.mode("default")) == (("default",), PLAIN)


def test_seed_is_sent_to_servers_of_our_own_only(write: Write) -> None:
    assert load_one(write(one_mode("seed: not_sent"))).mode("m").get("seed") is None
    assert "seed" not in load_one(write(API)).mode("default")
    sent = load_one(write(API + "modes: {m: {seed: per_item}}\n")).mode("m")
    assert sent["seed"] == "per_item"


def test_merge_keys_share_sampling(write: Write) -> None:
    modes = "  a: &a {temperature: 1, top_p: 0.5}\n  b: {<<: *a, top_p: 0.9}\n"
    model = load_one(write(LOCAL + modes))
    assert (model.mode("b")["temperature"], model.mode("b")["top_p"]) == (1.0, 0.9)


def test_dates_and_versions_stay_text(write: Write) -> None:
    api = "api: {base_url: 'http://h/v1', model: 2024-08-06}\n"
    config = load_one(write(api)).api
    assert config is not None and config.model == "2024-08-06"


@pytest.mark.parametrize(
    "args",
    [
        "[--max-num-seqs, 8, --x, '{\"a\": 1}']",
        ">-\n  --max-num-seqs 8\n  --x '{\"a\": 1}'",
    ],
)
def test_arguments_as_a_list_or_as_a_line(write: Write, args: str) -> None:
    model = load_one(write(f"{LOCAL}  m: {{}}\nvllm_args: {args}\n"))
    assert model.vllm_args == ("--max-num-seqs", "8", "--x", '{"a": 1}')


def test_devices_are_words(write: Write) -> None:
    assert load_one(write(LOCAL + "  m: {}\ngpus: [0, GPU-1a]\n")).gpus == ("0", "GPU-1a")


@pytest.mark.parametrize(
    ("fields", "engine", "gpus"),
    [
        ("", "vllm", 1),
        ("tensor_parallel_size: 4", "vllm", 4),
        ("tensor_parallel_size: 4\nnum_gpus: 8", "vllm", 8),
        ("gpus: [2, 3]", "vllm", 2),
        ("engine: llamacpp", "llamacpp", 0),
    ],
)
def test_devices_a_model_takes(write: Write, fields: str, engine: str, gpus: int) -> None:
    model = load_one(write(f"{LOCAL}  m: {{}}\n{fields}\n"))
    assert (model.engine_name, model.gpu_count) == (engine, gpus)


def test_url_loses_its_last_slash_and_keeps_its_variables(write: Write) -> None:
    api = load_one(write("api: {base_url: '${HOST}/v1/', model: m}\n")).api
    assert api is not None and api.base_url == "${HOST}/v1"


def test_judge_sends_what_its_file_says(write: Write) -> None:
    text = "model: x\ntemperature: 1\ntop_p: not_sent\nmax_tokens: 5\nextra_body: {a: 1}\n"
    judge = load_project(write(judge=text)).judges["j"]
    assert judge.sampling() == {"temperature": 1.0, "max_tokens": 5, "extra_body": {"a": 1}}
    assert (judge.api_key_env, judge.votes, judge.parser) == ("OPENAI_API_KEY", 1, "adhere")


# Identity: what counts as a change, as configs/README.md says


@pytest.mark.parametrize(
    ("edit", "changes"),
    [
        ("# comment\n", False),
        ("enabled: false\n", False),
        ("concurrency: 7\n", False),
        ("port: 8123\ngpus: [1]\ntensor_parallel_size: 2\nslots: 9\nthreads: 3\n", False),
        ("vllm_args: [--x]\n", True),
        ("served_model_name: y\n", True),
        ("engine: llamacpp\n", True),
    ],
)
def test_what_counts_as_a_change_of_a_local_model(write: Write, edit: str, changes: bool) -> None:
    before = mode_of(load_project(write(one_mode("top_p: 1"))), "m", "m").hash
    after = mode_of(load_project(write(one_mode("top_p: 1.0") + edit)), "m", "m").hash
    assert (before != after) is changes


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        ("api: {model: m, base_url: 'http://${HOST}/v1/', api_key_env: OTHER}\n", False),
        ("api: {model: m, base_url: 'http://other/v1'}\n", True),
        ("api: {model: n, base_url: 'http://${HOST}/v1'}\n", True),
        ("api: {model: m, base_url: 'http://${HOST}/v1'}\nmodes: {default: {top_k: 1}}\n", True),
    ],
)
def test_what_counts_as_a_change_of_an_api_model(
    write: Write, monkeypatch: pytest.MonkeyPatch, model: str, changes: bool
) -> None:
    monkeypatch.setenv("HOST", "a")
    first = "api: {model: m, base_url: 'http://${HOST}/v1'}\n"
    before = mode_of(load_project(write(first)), "m", "default").hash
    monkeypatch.setenv("HOST", "b")
    after = mode_of(load_project(write(model)), "m", "default").hash
    assert (before != after) is changes


# Anything at all in place of a file


def validates(kind: type[GlobalConfig] | type[ModelConfig] | type[JudgeConfig], text: str) -> None:
    """Load text as a file of a project; nothing but ConfigError may come of it."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("configs", "judge_configs"):
            (root / name).mkdir()
        places = {
            GlobalConfig: "configs/global.yaml",
            ModelConfig: "configs/m.yaml",
            JudgeConfig: "judge_configs/j.yaml",
        }
        (root / "configs/global.yaml").write_text(GLOBAL)
        (root / "judge_configs/j.yaml").write_text("model: x\n")
        (root / places[kind]).write_text(text, encoding="utf-8", errors="surrogateescape")
        try:
            project: Project = load_project(root)
        except ConfigError as error:
            assert str(error).startswith(("configs/", "judge_configs/"))
            str(error).encode()
        else:
            for name, model in project.models.items():
                for mode in model.mode_names:
                    mode_of(project, name, mode).hash  # noqa: B018 - must not raise


KINDS = st.sampled_from([GlobalConfig, ModelConfig, JudgeConfig])
FIELDS = st.sampled_from(
    sorted(
        {name for kind in (GlobalConfig, ModelConfig, JudgeConfig) for name in kind.model_fields}
        | {"base_url", "model", "api_key_env", "temperature", "top_k", "extra_body", "attempts"}
    )
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.dates()
    | st.binary(max_size=4)
    | st.sampled_from(["not_sent", "http://h/v1", "a", "thinking", "${X}"])
)
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(FIELDS | st.text(max_size=6) | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(kind=KINDS, tree=st.dictionaries(FIELDS, TREES, max_size=6))
def test_any_tree_is_accepted_or_refused_with_a_message(
    kind: type[GlobalConfig] | type[ModelConfig] | type[JudgeConfig], tree: dict[str, object]
) -> None:
    validates(kind, yaml.dump(tree, allow_unicode=True))


@settings(max_examples=150, deadline=None)
@given(kind=KINDS, text=st.text(max_size=80))
def test_any_text_is_accepted_or_refused_with_a_message(
    kind: type[GlobalConfig] | type[ModelConfig] | type[JudgeConfig], text: str
) -> None:
    validates(kind, text)


PIECES = st.sampled_from(
    [
        *("api:", "modes:", "- ", "  ", "\n", "\t", "{", "}", "[", "]", "&a ", "*a", "<<: ", ": "),
        *("!!int ", "!!bool ", "!!timestamp ", "!!set ", "!!binary ", "=", "~", "0x_", "1:2", "no"),
        *("|", ">", "'", '"', "#", "? ", "%", "@", "`", "...", "---", "1e999", ".nan", "x", ", "),
        "2001-99-99",
    ]
)


@settings(max_examples=300, deadline=None)
@given(kind=KINDS, pieces=st.lists(PIECES, max_size=16))
def test_any_heap_of_yaml_is_accepted_or_refused_with_a_message(
    kind: type[GlobalConfig] | type[ModelConfig] | type[JudgeConfig], pieces: list[str]
) -> None:
    validates(kind, "".join(pieces))


@pytest.mark.parametrize(
    "text",
    [
        "a: 2001-99-99\n",
        "a: !!timestamp x\n",
        "a: !!bool maybe\n",
        "a: !!set {x}\n",
        "a: &a [*a]\n",
        "modes: &a {b: *a}\n",
        "vllm_args: &a [*a]\n",
        "a: " + "1" * 5000 + "\n",
        "=: 1\n",
        "? \n: x\n",
        "{a: b}: c\n",
        "!!python/name:os.system\n",
        "a: !!binary '***'\n",
    ],
)
def test_files_that_break_yaml_readers(text: str) -> None:
    for kind in (GlobalConfig, ModelConfig, JudgeConfig):
        validates(kind, text)


# The reference


def test_reference_is_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert reference.main(["--check"]) == 0


def test_reference_notices_drift_and_repairs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / reference.PAGE).read_text(encoding="utf-8")
    (tmp_path / "configs").mkdir()
    drifted = tmp_path / reference.PAGE
    drifted.write_text(page.replace("| `temperature` |", "| `temper` |"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert reference.main(["--check"]) == 1
    assert "does not match the schema: run python -m adhere.config.reference" in (
        capsys.readouterr().err
    )
    assert reference.main([]) == 0
    assert drifted.read_text(encoding="utf-8") == page
    assert reference.main(["--check"]) == 0


def test_reference_needs_its_markers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert reference.main(["--check"]) == 1
    (tmp_path / "configs").mkdir()
    (tmp_path / reference.PAGE).write_text("# nothing\n")
    assert reference.main([]) == 1
    assert "mark the field reference are gone" in capsys.readouterr().err


def test_reference_describes_every_field_in_plain_words() -> None:
    for _, _, model, _ in reference.sections():
        for name, field in model.model_fields.items():
            assert field.description, f"{model.__name__}.{name} has no description"
    text = reference.reference()
    for word in ("number 0 to 2 or `not_sent`", "whole number from 1", "true or false"):
        assert word in text
    for word in ("Optional", "Union", "None", "str", "Annotated", "Literal", "PositiveInt"):
        assert f" {word} " not in text.replace("|", " | ")


def test_templates_shown_in_the_page_are_valid() -> None:
    page = (ROOT / reference.PAGE).read_text(encoding="utf-8")
    blocks = [part.partition("```")[0] for part in page.split("```yaml\n")[1:]]
    assert len(blocks) == 2
    for block in blocks:
        parse(ModelConfig, yaml.safe_load(block), "configs/README.md")


def test_policies_and_parsers_are_those_that_there_are() -> None:
    assert set(get_args(PolicyName)) == set(POLICIES)
    assert set(get_args(ParserName)) == set(PARSERS)
