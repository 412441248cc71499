"""What a local model needs from its engine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """One local model server, everything resolved.

    model_path: a path or a hub id; for llamacpp a .gguf file or ``package:NAME``.
    max_model_len: tokens of context for one request (llamacpp: for each slot).
    slots, threads: concurrent sequences and decoding threads (llamacpp only).
    args: further command-line arguments, verbatim (vllm only).
    port: a fixed port, or None for a free one.
    env: variables added to the server's environment.
    held: open descriptors (leases) that stay open until the last process of the server is gone.
    """

    engine: Literal["vllm", "llamacpp"]
    model_path: str
    served_model_name: str
    max_model_len: int
    slots: int = 4
    threads: int = 1
    tensor_parallel_size: int = 1
    args: tuple[str, ...] = ()
    port: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    held: tuple[int, ...] = ()
