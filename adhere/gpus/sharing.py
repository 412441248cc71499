"""How many GPUs the jobs of one call may take together on this machine, known before the first."""

from dataclasses import dataclass

from adhere.config import Local
from adhere.errors import ConfigError
from adhere.gpus.devices import Pool


@dataclass(frozen=True, slots=True)
class Sharing:
    """A machine's pool, and ``--resources gpu=N`` where the caller limits it further."""

    pool: Pool
    stated: int | None = None

    @property
    def limit(self) -> int:
        """GPUs in use at once at most: what Snakemake counts."""
        return len(self.pool.devices) if self.stated is None else self.stated

    def servers(self, local: Local, wanted: int, file: str) -> int:
        """Return how many of a model's servers find room, at least one.

        Raises ConfigError for a model that can never be served here: Snakemake itself would give
        it fewer GPUs than it asks for, silently.
        """
        each = local.gpu_count
        if not each:
            return wanted
        devices = self.pool.among(local.gpus, file)
        room = min(len(devices), self.limit)
        if each > room:
            raise ConfigError(
                f"{file}: takes {each} GPUs, and there are {room}: {self._why(local)}. Run it "
                "where there are enough (a cluster: --profile), lower `tensor_parallel_size` or "
                "`num_gpus`, or leave it out with --config"
            )
        return min(wanted, room // each)

    def _why(self, local: Local) -> str:
        limits = [self.pool.describe()]
        if local.gpus is not None:
            limits.append(f"its own `gpus` ({', '.join(local.gpus)})")
        if self.stated is not None:
            limits.append(f"--resources gpu={self.stated}")
        return ", ".join(limits)
