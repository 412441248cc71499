"""What a job's servers get to see: GPUs leased on this machine, or those a batch system gave.

Whether a job was sent away by a batch system is told by Snakemake, not guessed from variables: the
call that runs a job for an executor of another machine (``--mode remote``) sets
``ADHERE_ALLOCATED``, see ``mark_allocation``. A workflow that runs *inside* an allocation (its main
process in a Slurm job) still leases, among the devices that CUDA_VISIBLE_DEVICES leaves it.
"""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from adhere.errors import ConfigError
from adhere.gpus.devices import VISIBLE, Device, allocated, local_pool, visible
from adhere.gpus.leases import Wish, leased
from adhere.gpus.nvml import Driver, driver

T = TypeVar("T")

_ALLOCATED = "ADHERE_ALLOCATED"
# How long a driver may take to give memory back; well within the time a stopped workflow has.
_RELEASE_TIMEOUT_S = 15.0
_RELEASE_POLL_S = 0.2
# Less than any model takes, more than what a driver itself holds now and then.
_RELEASE_MARGIN_MIB = 512


def mark_allocation(sent_away: bool) -> None:
    """Tell the jobs started from here whether an executor sent them to where they run."""
    if sent_away:
        os.environ[_ALLOCATED] = "1"
    else:
        os.environ.pop(_ALLOCATED, None)


@dataclass(frozen=True, slots=True)
class Request:
    """The GPUs of one job: ``each`` for a server, of which there may be ``replicas`` at most.

    file: the configuration that asks, for messages. names: particular devices, or None for any.
    pool: ``gpus`` of global.yaml.
    """

    file: str
    each: int
    replicas: int = 1
    names: tuple[str, ...] | None = None
    pool: tuple[str, ...] | Literal["auto"] = "auto"


@dataclass(frozen=True, slots=True)
class Share:
    """One server's part: its devices, the variables that show them, the leases that hold them."""

    devices: tuple[Device, ...]
    env: dict[str, str]
    held: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Grant:
    """What a job got: a share for each server, and facts for its record."""

    shares: tuple[Share, ...]
    record: dict[str, Any] = field(default_factory=dict)


@contextmanager
def granted(request: Request) -> Iterator[Grant]:
    """Get GPUs for the ``with`` block. Start servers inside it, and end them there.

    On this machine devices are leased; it waits while too few are free. When the block ends it
    waits until the devices' memory is free again, for a while. Raises ConfigError where there are
    too few at all.
    """
    if not request.each:
        share = Share((), visible(()))
        yield Grant((share,) * request.replicas, {"from": "none", "devices": []})
        return
    with driver() as nvidia, ExitStack() as stack:
        if os.environ.get(_ALLOCATED):
            shares, origin = _allocated(request, nvidia), "allocation"
        else:
            shares, origin = stack.enter_context(_leased(request, nvidia)), "lease"
        devices = [device for share in shares for device in share.devices]
        before = _used([device.key for device in devices], nvidia)
        try:
            yield Grant(shares, _record(origin, devices, nvidia))
        finally:
            _wait_released(before, nvidia)


@contextmanager
def _leased(request: Request, nvidia: Driver | None) -> Iterator[tuple[Share, ...]]:
    pool = local_pool(request.pool, os.environ, nvidia)
    candidates = pool.among(request.names, request.file)
    if len(candidates) < request.each:
        raise ConfigError(f"{request.file}: takes {request.each} of {pool.describe()}")
    most = request.each * request.replicas
    with leased(Wish(candidates, request.each, most, request.file)) as lease:
        parts = _parts(lease.devices, request.each)
        handles = _parts(lease.handles, request.each)
        yield tuple(
            Share(part, visible(part), held) for part, held in zip(parts, handles, strict=True)
        )


def _allocated(request: Request, nvidia: Driver | None) -> tuple[Share, ...]:
    """Share out what the batch system gave; its own variables stay where one server has it all."""
    devices = allocated(os.environ, nvidia)
    if devices is None:
        return (Share((), {}),)
    if len(devices) < request.each:
        raise ConfigError(
            f"{request.file}: takes {request.each} GPUs, and the batch system gave this job "
            f"{len(devices)} ({VISIBLE}={os.environ.get(VISIBLE, '')}): ask for as many as "
            "`num_gpus` says (resource `gpu` of the rule)"
        )
    parts = _parts(devices, request.each)[: request.replicas]
    if len(parts) == 1:
        return (Share(devices, {}),)
    # The order of indices is the batch system's: it is not changed here.
    return tuple(Share(part, {VISIBLE: visible(part)[VISIBLE]}) for part in parts)


def _parts(sequence: Sequence[T], size: int) -> list[tuple[T, ...]]:
    """Cut into parts of a size; what is left over is not used."""
    count = len(sequence) // size
    return [tuple(sequence[size * n : size * (n + 1)]) for n in range(count)]


def _record(origin: str, devices: Sequence[Device], nvidia: Driver | None) -> dict[str, Any]:
    """Return what a job's record says of its GPUs."""
    return {
        "from": origin,
        "driver": nvidia.version if nvidia is not None else None,
        "devices": [
            {
                "name": device.name,
                "uuid": device.gpu.uuid if device.gpu else None,
                "product": device.gpu.product if device.gpu else None,
                "memory_mib": device.gpu.memory_mib if device.gpu else None,
            }
            for device in devices
        ],
    }


def _used(uuids: Sequence[str], nvidia: Driver | None) -> dict[str, int]:
    """Return the memory in use (MiB) of those devices that the driver answers for."""
    used = {uuid: nvidia.used_mib(uuid) for uuid in uuids} if nvidia is not None else {}
    return {uuid: mib for uuid, mib in used.items() if mib is not None}


def _wait_released(before: dict[str, int], nvidia: Driver | None) -> None:
    """Wait until devices have no more in use than before; warn and go on when it takes too long.

    Devices are compared by memory, not by process: in a container the driver's process numbers are
    those of the host.
    """
    deadline = time.monotonic() + _RELEASE_TIMEOUT_S
    while True:
        now = _used(list(before), nvidia)
        full = [uuid for uuid in now if now[uuid] > before[uuid] + _RELEASE_MARGIN_MIB]
        if not full:
            return
        if time.monotonic() > deadline:
            break
        time.sleep(_RELEASE_POLL_S)
    for uuid in full:
        sys.stderr.write(
            f"warning: GPU {uuid} still has {now[uuid]} MiB in use ({before[uuid]} MiB before the "
            f"model was served), {_RELEASE_TIMEOUT_S:g} s after its server ended: the next model "
            "may not fit\n"
        )
