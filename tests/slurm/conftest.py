"""One Slurm for all tests of this folder."""

from collections.abc import Iterator

import pytest
from cluster import Cluster, why_not


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running Slurm; it ends with the session."""
    lacking = why_not()
    if lacking is not None:
        pytest.skip(f"not on this machine: {lacking}")
    with Cluster(tmp_path_factory.mktemp("slurm")) as running:
        yield running
