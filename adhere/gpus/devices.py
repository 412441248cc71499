"""The devices that jobs of this machine share: the pool, and how a device is named.

A device is named as ``CUDA_VISIBLE_DEVICES`` names it: by its index, by its UUID (``GPU-…``, or
the beginning of one) or as a MIG instance (``MIG-…``). Names are text and stay as they are written.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from adhere.errors import ConfigError
from adhere.gpus.nvml import Driver, Gpu

VISIBLE = "CUDA_VISIBLE_DEVICES"
# What CUDA (a list ends at an index below 0) and Slurm write for "none".
_NONE = ("-1", "NoDevFiles")
# Names that only a real device can have; where a driver is asked, it must know them.
_REAL = re.compile(r"\d+|GPU-.*|MIG-.*")


@dataclass(frozen=True, slots=True)
class Device:
    """A device under the name that its server gets to see; ``gpu`` is None where no driver knows
    it."""

    name: str
    gpu: Gpu | None = None

    @property
    def key(self) -> str:
        """The same for every name of one device."""
        return self.gpu.uuid if self.gpu is not None else self.name

    def is_called(self, name: str) -> bool:
        """Whether ``name`` means this device."""
        return name == self.name or (self.gpu is not None and _means(name, self.gpu))


@dataclass(frozen=True, slots=True)
class Pool:
    """The devices that local models of this machine may use, in order; ``origin`` says why these,
    for messages."""

    devices: tuple[Device, ...]
    origin: str

    def among(self, names: Sequence[str] | None, file: str) -> tuple[Device, ...]:
        """Return the devices that a model may use: those it names, or all.

        Raises ConfigError naming ``file`` where it names one that is not in the pool.
        """
        if names is None:
            return self.devices
        chosen: dict[str, Device] = {}
        for name in names:
            found = next((device for device in self.devices if device.is_called(name)), None)
            if found is None:
                raise ConfigError(f"{file}: gpus: {name} is not among {self.describe()}")
            chosen[found.key] = found
        return tuple(chosen.values())

    def describe(self) -> str:
        """Say what is in the pool, for messages."""
        names = ", ".join(device.name for device in self.devices) or "none"
        return f"the GPUs of {self.origin} ({names})"


def local_pool(
    configured: Sequence[str] | Literal["auto"], environ: Mapping[str, str], driver: Driver | None
) -> Pool:
    """Return this machine's pool: what ``gpus`` of global.yaml lists, or what the driver shows.

    Where the caller's CUDA_VISIBLE_DEVICES is set, the pool holds nothing else. Raises ConfigError
    for a device that the driver does not have.
    """
    caller = named(environ)
    shown = tuple(Device(_name(gpu), gpu) for gpu in driver.gpus) if driver else ()
    if configured == "auto":
        devices = shown if caller is None else tuple(_resolve(name, shown) for name in caller)
        return Pool(_distinct(devices), "this machine" if caller is None else VISIBLE)
    devices = tuple(_resolve(name, shown) for name in configured)
    for device in devices:
        if shown and device.gpu is None and _REAL.fullmatch(device.name):
            raise ConfigError(
                f"configs/global.yaml: gpus: {device.name} is not on this machine "
                f"(there are: {', '.join(_both(gpu) for gpu in (d.gpu for d in shown) if gpu)})"
            )
    if caller is None:
        return Pool(_distinct(devices), "configs/global.yaml")
    seen = {_resolve(name, shown).key for name in caller}
    kept = tuple(device for device in devices if device.key in seen)
    return Pool(_distinct(kept), f"configs/global.yaml that {VISIBLE} leaves")


def allocated(environ: Mapping[str, str], driver: Driver | None) -> tuple[Device, ...] | None:
    """Return the devices that a batch system gave this job, under the names it gave them.

    None where it set no CUDA_VISIBLE_DEVICES and no driver shows any: nothing is known.
    """
    shown = tuple(Device(_name(gpu), gpu) for gpu in driver.gpus) if driver else ()
    given = named(environ)
    if given is None:
        return shown or None
    return tuple(_resolve(name, shown) for name in given)


def named(environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the names in CUDA_VISIBLE_DEVICES, None where it is not set."""
    value = environ.get(VISIBLE)
    if value is None:
        return None
    names: list[str] = []
    for name in map(str.strip, value.split(",")):
        if not name or name in _NONE:
            break
        names.append(name)
    return tuple(names)


def visible(devices: Sequence[Device]) -> dict[str, str]:
    """Return the variables that show a server these devices and no others."""
    variables = {VISIBLE: ",".join(device.name for device in devices)}
    if any(device.name.isdecimal() for device in devices):
        # Else CUDA counts from the fastest, and an index means another device than in nvidia-smi.
        variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    return variables


def _name(gpu: Gpu) -> str:
    """Indices where there are some: programs that read the variable themselves know these."""
    return gpu.uuid if gpu.index is None else str(gpu.index)


def _both(gpu: Gpu) -> str:
    return gpu.uuid if gpu.index is None else f"{gpu.index} = {gpu.uuid}"


def _means(name: str, gpu: Gpu) -> bool:
    """Whether a name is a GPU's index, its UUID or the beginning of it (as CUDA allows)."""
    if name == (None if gpu.index is None else str(gpu.index)):
        return True
    return len(name) > len("GPU-") and gpu.uuid.lower().startswith(name.lower())


def _resolve(name: str, shown: Sequence[Device]) -> Device:
    """Return a device under the name it was given, with what the driver knows of it."""
    matching = [device.gpu for device in shown if device.is_called(name)]
    return Device(name, matching[0] if len(matching) == 1 else None)


def _distinct(devices: Sequence[Device]) -> tuple[Device, ...]:
    """Return each device once, under its first name."""
    first: dict[str, Device] = {}
    for device in devices:
        first.setdefault(device.key, device)
    return tuple(first.values())
