"""What the NVIDIA driver says of this machine's GPUs, through NVML (package ``nvidia-ml-py``).

The only place that talks to the driver. Without a driver, or without GPUs, there is simply nothing.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pynvml

# NVML's handle of a device: an opaque pointer.
Handle = Any


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU, or a MIG instance of one, as the driver shows it.

    index: its place in PCI order, as ``nvidia-smi`` counts; None for a MIG instance.
    """

    uuid: str
    product: str
    memory_mib: int
    index: int | None = None


class Driver:
    """A driver in use: which GPUs there are, and how much of their memory is taken."""

    def __init__(self, nvml: ModuleType) -> None:
        self._nvml = nvml
        self._handles: dict[str, Handle] = {}
        self.version: str = nvml.nvmlSystemGetDriverVersion()
        self.gpus: tuple[Gpu, ...] = tuple(self._enumerate())

    def used_mib(self, uuid: str) -> int | None:
        """Return how much of a GPU's memory is taken, None where the driver does not say."""
        try:
            return int(self._nvml.nvmlDeviceGetMemoryInfo(self._handles[uuid]).used) >> 20
        except (KeyError, self._nvml.NVMLError):
            return None

    def _enumerate(self) -> Iterator[Gpu]:
        """Yield every GPU; one that is split into MIG instances cannot be used but through them."""
        for index in range(self._nvml.nvmlDeviceGetCount()):
            handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
            if not self._is_split(handle):
                yield self._gpu(handle, index)
                continue
            for place in range(self._nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
                with contextlib.suppress(self._nvml.NVMLError_NotFound):
                    instance = self._nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)
                    yield self._gpu(instance, None)

    def _is_split(self, handle: Handle) -> bool:
        try:
            current, _pending = self._nvml.nvmlDeviceGetMigMode(handle)
        except self._nvml.NVMLError_NotSupported:
            return False
        return bool(current == self._nvml.NVML_DEVICE_MIG_ENABLE)

    def _gpu(self, handle: Handle, index: int | None) -> Gpu:
        uuid: str = self._nvml.nvmlDeviceGetUUID(handle)
        self._handles[uuid] = handle
        product: str = self._nvml.nvmlDeviceGetName(handle)
        memory = int(self._nvml.nvmlDeviceGetMemoryInfo(handle).total) >> 20
        return Gpu(uuid, product, memory, index)


@contextlib.contextmanager
def driver(nvml: ModuleType = pynvml) -> Iterator[Driver | None]:
    """Open the driver for the ``with`` block; None where there is none that works."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        yield None
        return
    try:
        try:
            opened = Driver(nvml)
        except nvml.NVMLError:
            # A GPU that fell off the bus, a library older than its driver: no facts at all.
            opened = None
        yield opened
    finally:
        nvml.nvmlShutdown()
