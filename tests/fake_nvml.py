"""A FAKE of the module pynvml, for machines without a GPU: the functions that the project calls.

What it shows is made up; the names, signatures and errors are those of nvidia-ml-py 13.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace

MIB = 1 << 20


class NVMLError(Exception):
    """Base of all errors, as in pynvml."""


class NVMLError_NotFound(NVMLError):  # noqa: N801, N818 - pynvml's name
    """There is no such device."""


class NVMLError_NotSupported(NVMLError):  # noqa: N801, N818 - pynvml's name
    """The device cannot do that."""


@dataclass
class FakeGpu:
    """A made-up GPU; ``instances`` are its MIG instances, None where it knows no MIG."""

    uuid: str
    used_mib: int = 0
    instances: "Sequence[FakeGpu] | None" = None
    memory_mib: int = 81920


class FakeNvml(ModuleType):
    """Stands where the module pynvml does."""

    NVML_DEVICE_MIG_ENABLE = 1
    NVMLError = NVMLError
    NVMLError_NotFound = NVMLError_NotFound
    NVMLError_NotSupported = NVMLError_NotSupported

    def __init__(self, gpus: Sequence[FakeGpu] | None) -> None:
        """Show these GPUs; None stands for a machine without a driver."""
        super().__init__("fake_nvml")
        self.gpus = gpus
        self.open = 0

    def nvmlInit(self) -> None:  # noqa: N802 - pynvml's name, as below
        if self.gpus is None:
            raise NVMLError("NVML Shared Library Not Found")
        self.open += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.open -= 1

    def nvmlSystemGetDriverVersion(self) -> str:  # noqa: N802
        return "580.0-fake"

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.gpus or ())

    def nvmlDeviceGetHandleByIndex(self, index: int) -> FakeGpu:  # noqa: N802
        return (self.gpus or ())[index]

    def nvmlDeviceGetMigMode(self, device: FakeGpu) -> list[int]:  # noqa: N802
        if device.instances is None:
            raise NVMLError_NotSupported
        return [1 if device.instances else 0] * 2

    def nvmlDeviceGetMaxMigDeviceCount(self, device: FakeGpu) -> int:  # noqa: N802, ARG002
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(  # noqa: N802
        self, device: FakeGpu, index: int
    ) -> FakeGpu:
        try:
            return (device.instances or ())[index]
        except IndexError:
            raise NVMLError_NotFound from None

    def nvmlDeviceGetUUID(self, handle: FakeGpu) -> str:  # noqa: N802
        return handle.uuid

    def nvmlDeviceGetName(self, handle: FakeGpu) -> str:  # noqa: N802, ARG002
        return "Fake GPU 80GB"

    def nvmlDeviceGetMemoryInfo(self, handle: FakeGpu) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(total=handle.memory_mib * MIB, used=handle.used_mib * MIB)
