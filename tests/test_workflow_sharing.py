"""Several jobs of one call of Snakemake at a provider that lets in only what is configured."""

from pathlib import Path

import pytest
from mock_endpoint import MockConfig, start_mock
from workflow_project import KEY, make_project

pytestmark = pytest.mark.workflow


def test_jobs_at_the_same_time_stay_within_the_limit_together(tmp_path: Path) -> None:
    provider = MockConfig(require_key=KEY, latency_s=0.5, most_in_flight=4)
    with start_mock(tmp_path, provider) as mock:
        made = make_project(tmp_path / "project", mock.base_url, mock.base_url)
        item = made.dataset()[0]
        made.write_dataset(
            [
                {**item, "id": number, "input": [{"role": "user", "content": f"({number}) Hi."}]}
                for number in range(12)
            ]
        )
        options = ("predictions", "--config", "modes=plain", "repeats=3", "concurrency=4")
        called = made.snakemake(*options, cores=3)
        assert called.code == 0, called.text
        stats = mock.stats()
    # Three jobs with twelve requests each, no one of them refused.
    assert stats.statuses == {200: 36}
    assert stats.max_in_flight == 4
