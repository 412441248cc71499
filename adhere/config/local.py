"""What the workflow serves itself: fields of a model file, and of ``local`` in a judge file."""

import re
import shlex
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from adhere.config.fields import PositiveInt, Strict, Text, as_texts


def _devices(names: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse names that CUDA_VISIBLE_DEVICES would take for something else than one device."""
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9][\w./:-]*", name):
            raise ValueError(f"{name!r} is no device: write an index from 0, a UUID or a MIG name")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"names {', '.join(twice)} more than once")
    return names


def _arguments(value: Any) -> Any:
    return as_texts(shlex.split(value) if isinstance(value, str) else value)


Devices = Annotated[tuple[str, ...], BeforeValidator(as_texts), AfterValidator(_devices)]
Arguments = Annotated[tuple[str, ...], BeforeValidator(_arguments)]


class Local(Strict):
    """A model that the workflow serves itself; shared by model and judge files."""

    engine: Literal["vllm", "llamacpp"] | None = Field(
        None,
        description="`vllm`, or `llamacpp` for the embedded engine. Default: `llamacpp` for a "
        "`.gguf` file or `package:` path, else `vllm`.",
    )
    model_path: Text | None = Field(
        None,
        description="Folder or file (absolute, or with `${MODELS_DIR}`), hub id, or "
        "`package:NAME` for a model that a Python package carries.",
    )
    max_model_len: PositiveInt | None = Field(
        None, description="Context window in tokens, prompt and output together."
    )
    served_model_name: Text | None = Field(
        None, description="Name under which the server offers the model. Default: the file's name."
    )
    vllm_args: Arguments = Field(
        (), description="Handed to the server verbatim: a list, or one line as in a shell."
    )
    tensor_parallel_size: PositiveInt = Field(1, description="GPUs that share one model copy.")
    num_gpus: Annotated[int, Field(ge=0)] | None = Field(
        None,
        description="GPUs that one server takes. Default: as many as `gpus` names, else "
        "`tensor_parallel_size` (`vllm`), 0 (`llamacpp`). 0 shows the server no GPU.",
    )
    gpus: Devices | None = Field(
        None,
        description="Particular devices (indices, UUIDs or MIG names) instead of any free ones of "
        "the pool; with `num_gpus`, any so many of them. A cluster gives a job its devices itself.",
    )
    port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        None, description="A fixed port. Default: any free one."
    )
    slots: PositiveInt = Field(4, description="Parallel sequences of the `llamacpp` engine.")
    threads: PositiveInt = Field(1, description="CPU threads of the `llamacpp` engine.")

    @property
    def engine_name(self) -> Literal["vllm", "llamacpp"]:
        """The engine that serves this model: as configured, or by its path."""
        if self.engine is not None:
            return self.engine
        path = self.model_path or ""
        packaged = path.endswith(".gguf") or path.startswith("package:")
        return "llamacpp" if packaged else "vllm"

    @property
    def gpu_count(self) -> int:
        """GPUs that serving this model takes."""
        if self.num_gpus is not None:
            return self.num_gpus
        if self.gpus is not None:
            return len(self.gpus)
        return self.tensor_parallel_size if self.engine_name == "vllm" else 0
