"""NeMo Gym's AgentIF app behind a small stub of what it imports; a process of its own.

``python oracle.py APP`` reads rows as JSON lines (``text``, ``constraints``, ``judge``: the text of
each judge call by the first line of its prompt) and writes a line with their verdicts, one for
each constraint, and the counts that its ``verify`` returns.

The app runs checkers in its own process: give it published data only.
"""

import asyncio
import importlib.util
import json
import sys
import types
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

COUNTS: tuple[str, ...] = (
    "reward",
    "n_true",
    "n_false",
    "n_null",
    "n_skipped",
    "n_error",
    "isr_pass",
)
COUNTS += ("isr_counted", "by_dimension", "by_type", "query_id", "turn_id")


class _Loose(BaseModel):
    model_config = ConfigDict(extra="allow")


class _RunRequest(_Loose):
    responses_create_params: _Loose


class _VerifyRequest(_RunRequest):
    response: _Loose


class _VerifyResponse(_VerifyRequest):
    reward: float
    mask_sample: bool = False
    failure_kind: str | None = None
    failure_reason: str | None = None


class _Server(_Loose):
    ray_enabled: ClassVar[bool] = False
    config: Any
    server_client: Any

    def model_post_init(self, context: Any, /) -> None:
        """What the app calls before its own."""

    def setup_webserver(self) -> None:
        """What the app refers to and this script does not use."""


class _Replay:
    """The judge: answers a prompt with the text that is on record for it."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}

    async def post(self, *, server_name: str, url_path: str, json: dict[str, Any]) -> Any:
        assert (server_name, url_path) == ("judge", "/v1/responses")
        key = json["input"][0]["content"].partition("\n")[0]
        return {"output_text": self.texts[key]}


async def _json(response: Any) -> Any:
    return response


def _stub() -> None:
    """Make the modules that the app imports."""
    modules: dict[str, dict[str, Any]] = {
        "nemo_gym": {},
        "nemo_gym.base_resources_server": {
            "BaseResourcesServerConfig": _Loose,
            "BaseRunRequest": _RunRequest,
            "BaseVerifyRequest": _VerifyRequest,
            "BaseVerifyResponse": _VerifyResponse,
            "SimpleResourcesServer": _Server,
        },
        "nemo_gym.config_types": {"ModelServerRef": _Loose},
        "nemo_gym.openai_utils": {
            "NeMoGymResponse": _Loose,
            "NeMoGymResponseCreateParamsNonStreaming": _Loose,
        },
        "nemo_gym.server_utils": {"get_response_json": _json},
    }
    for name, content in modules.items():
        module = types.ModuleType(name)
        module.__dict__.update(content)
        sys.modules[name] = module


def _load(path: Path) -> types.ModuleType:
    _stub()
    spec = importlib.util.spec_from_file_location("agentif_app", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["agentif_app"] = module
    spec.loader.exec_module(module)
    return module


async def _main() -> None:
    app = _load(Path(sys.argv[1]))
    out = sys.stdout
    # What a checker prints is no result.
    sys.stdout = sys.stderr
    judge = _Replay()
    config = app.AgentIFResourcesServerConfig(
        judge_model_server={"name": "judge"}, judge_responses_create_params={"input": []}
    )
    server = app.AgentIFResourcesServer(config=config, server_client=judge)
    names = {id(app._SKIPPED): "skipped", id(app._ERROR): "error"}
    for line in sys.stdin:
        row = json.loads(line)
        judge.texts = row["judge"]
        body = app.AgentIFVerifyRequest(**row["body"])
        text = app._strip_think(app._response_text(body.response))
        scores = [await server._score_constraint(c, text) for c in row["constraints"]]
        counted = (await server.verify(body)).model_dump()
        found = {
            "verdicts": [s if isinstance(s, bool) else names[id(s)] for s in scores],
            "counts": {key: counted[key] for key in COUNTS},
        }
        out.write(json.dumps(found) + "\n")
        out.flush()


if __name__ == "__main__":
    asyncio.run(_main())
