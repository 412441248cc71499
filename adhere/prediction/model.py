"""A model in one mode: what is sent with its requests, and what identifies its predictions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adhere import PROTOCOL
from adhere.config import ModelConfig, Project
from adhere.jsonio import canonical, fingerprint

# Parameters that the request has a place of its own for; the others go in as they are.
_OWN_PLACES = ("max_tokens", "enable_thinking", "seed", "extra_body")


@dataclass(frozen=True, slots=True)
class Mode:
    """One model in one mode.

    ``model_id`` is the name in requests, ``budget`` the output budget in tokens (None: not sent),
    ``identity`` everything that can change a prediction apart from the item and the run.
    """

    model: str
    mode: str
    thinks: bool
    model_id: str
    sampling: Mapping[str, Any]
    budget: int | None
    budget_field: str
    identity: Mapping[str, Any]

    @property
    def hash(self) -> str:
        """Fingerprint of the identity: rows that differ in it are never averaged."""
        return fingerprint(self.identity)

    @property
    def text(self) -> str:
        """The identity as a rule's parameter: a plan that differs shows where."""
        return canonical(self.identity).decode()

    @property
    def sampled(self) -> bool:
        """Whether two runs may be expected to differ."""
        return self.sampling.get("temperature") != 0.0

    def payload(
        self, messages: Sequence[Mapping[str, Any]], seed: int, budget: int | None
    ) -> dict[str, Any]:
        """Build one request's body; ``messages`` go in exactly as they are in the dataset."""
        own = {k: v for k, v in self.sampling.items() if k not in _OWN_PLACES}
        body: dict[str, Any] = {"model": self.model_id, "messages": list(messages), **own}
        if budget is not None:
            body[self.budget_field] = budget
        if "enable_thinking" in self.sampling:
            body["chat_template_kwargs"] = {"enable_thinking": self.sampling["enable_thinking"]}
        if "seed" in self.sampling:
            body["seed"] = seed
        return body | dict(self.sampling.get("extra_body", {}))


def served_name(name: str, config: ModelConfig) -> str:
    """Return the name under which a model is asked for."""
    if config.api is not None:
        return config.api.model
    return config.served_model_name or name


def mode_of(project: Project, model: str, mode: str) -> Mode:
    """Return a configured model's mode."""
    config = project.models[model]
    sampling = config.mode(mode) if config.recorded is None else {}
    budget = sampling.get("max_tokens")
    if budget is not None and config.max_model_len is not None:
        # A budget that alone fills the window is refused by vLLM; one token is left to the prompt.
        budget = min(budget, config.max_model_len - 1)
    return Mode(
        model=model,
        mode=mode,
        thinks=config.thinks(mode),
        model_id=served_name(model, config),
        sampling=sampling,
        budget=budget,
        budget_field=config.api.max_tokens_field if config.api else "max_tokens",
        identity={
            "protocol": PROTOCOL,
            "served": _served_identity(config),
            "model": served_name(model, config),
            "mode": mode,
            "sampling": sampling,
        },
    )


def _served_identity(config: ModelConfig) -> dict[str, Any]:
    """Return what is served, as the file says it: addresses and devices are left out for local
    models, since they change nothing, and variables stay unexpanded for the same reason. Recorded
    files count by their content, as inputs do."""
    if config.recorded is not None:
        return {"recorded": True}
    if config.api is not None:
        return {"base_url": config.api.base_url, "max_model_len": config.max_model_len}
    return {
        "engine": config.engine_name,
        "model_path": config.model_path,
        "max_model_len": config.max_model_len,
        "args": list(config.vllm_args),
    }
