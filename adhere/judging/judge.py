"""A judge model: what is sent to it, and what identifies its verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adhere import PROTOCOL
from adhere.config import RULES_ONLY, JudgeConfig
from adhere.jsonio import canonical, fingerprint
from adhere.verdict import OWN_PARSER, READING

_BUDGETS = ("max_tokens", "max_completion_tokens")
_TRANSPORT = ("enabled", "concurrency", "api_key_env", "batch", "demo", "prices")
_READING = ("parser", "votes", "asks")
_LOCAL_TRANSPORT = ("port", "gpus", "num_gpus", "tensor_parallel_size", "slots", "threads")


_VERDICT_FORMAT = {
    "type": "json_schema",
    "json_schema": {
        "name": "verdict",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"verdict": {"type": "string", "enum": ["YES", "NO"]}},
            "required": ["verdict"],
            "additionalProperties": False,
        },
    },
}


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge by its name and configuration."""

    name: str
    config: JudgeConfig

    @property
    def asks_nobody(self) -> bool:
        """Whether this is the judge that leaves out every question."""
        return self.name == RULES_ONLY

    @property
    def has_budget(self) -> bool:
        """Whether the configuration bounds the length of a reply."""
        return any(key in self.config.sampling() for key in _BUDGETS)

    @property
    def asked(self) -> dict[str, Any]:
        """What can change a reply: the model, its sampling, where it is served.

        Defaults are left out, so that a new field of the configuration changes no hash.
        """
        content = self.config.model_dump(exclude=set(_TRANSPORT + _READING), exclude_defaults=True)
        if self.config.local is not None:
            content["local"] = self.config.local.model_dump(
                exclude=set(_LOCAL_TRANSPORT), exclude_defaults=True
            )
        return content

    @property
    def identity(self) -> dict[str, Any]:
        """What can change a verdict: the above, and how replies are read and counted."""
        reading = self.config.model_dump(include=set(_READING), exclude_defaults=True)
        if self.config.parser == OWN_PARSER:
            reading["reading"] = READING
        return {"protocol": PROTOCOL, **self.asked, **reading}

    @property
    def hash(self) -> str:
        """Fingerprint of the identity: rows that differ in it are never averaged."""
        return fingerprint(self.identity)

    @property
    def text(self) -> str:
        """The identity as a rule's parameter: a plan that differs shows where."""
        return canonical(self.identity).decode()

    def payload(
        self, prompt: str, *, room: int = 1, verdict_wanted: bool = False
    ) -> dict[str, Any]:
        """Build one request's body; ``room`` multiplies the output budget, where there is one."""
        sampling: Mapping[str, Any] = self.config.sampling()
        body = {
            "model": self.config.model,
            "messages": [{"role": "user", "content": prompt}],
            **{key: value for key, value in sampling.items() if key != "extra_body"},
        }
        for key in _BUDGETS:
            if key in body:
                body[key] *= room
        if self.config.structured and verdict_wanted:
            body["response_format"] = _VERDICT_FORMAT
        return body | dict(sampling.get("extra_body", {}))
