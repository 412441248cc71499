"""GPUs of this machine: the pool that local models share, leases on its devices, their facts."""

import os

from adhere.config import GlobalConfig
from adhere.gpus.devices import Device, Pool, allocated, local_pool, named, visible
from adhere.gpus.grant import Grant, Request, Share, granted, mark_allocation
from adhere.gpus.nvml import driver
from adhere.gpus.sharing import Sharing

__all__ = [
    "Device",
    "Grant",
    "Pool",
    "Request",
    "Share",
    "Sharing",
    "allocated",
    "granted",
    "local_pool",
    "mark_allocation",
    "named",
    "pool_of",
    "visible",
]


def pool_of(config: GlobalConfig) -> Pool:
    """Return the pool that a configuration means on this machine, now."""
    with driver() as nvidia:
        return local_pool(config.gpus, os.environ, nvidia)
