"""The recordings that the stand-in replays, compared with the real server.

Comes after the tests of ``test_vllm.py`` and ``test_vllm_ends.py``: by then everything was asked.
"""

import pytest
from vllm_engine import Vllm, compare


@pytest.mark.parametrize("vllm", [pytest.param("real", marks=pytest.mark.vllm)], indirect=True)
def test_recordings_are_what_the_server_says(vllm: Vllm) -> None:
    assert vllm.recorder is not None
    compare(vllm.recorder)
