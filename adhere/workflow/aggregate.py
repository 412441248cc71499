"""Questions of the rule ``aggregate``: what the summary reports, and what of it is still open."""

import os
from pathlib import Path

from adhere import files
from adhere.costs.money import price_list
from adhere.existing import existing_scores
from adhere.status import open_work
from adhere.workflow.call import Call
from adhere.workflow.score import Scoring


class Aggregating:
    """The summary of everything that is scored."""

    def __init__(self, call: Call, score: Scoring) -> None:
        self._call = call
        self._score = score

    def rows(self, _wildcards: object = None) -> list[str]:
        """All files that the summary reports: this call's, and all others that are finished."""
        return sorted({*self._score.paths(), *map(str, existing_scores(self._call.root))})

    def changed(self, _wildcards: object = None) -> list[str]:
        """Evidence that a score is gone which the summary reported."""
        gone = any(not Path(path).exists() for path in self._score.wanted())
        reported = files.summary(self._call.root).exists()
        return self._call.changes.evidence(reported_score_gone=gone and reported)

    def prices(self, _wildcards: object = None) -> str:
        """All prices, as the summary's parameter: no other result depends on them."""
        return price_list(self._call.plan.project).text

    def open_work_marker(self, _wildcards: object = None) -> str:
        """Parameter that builds the summary again, and so fails the call again, while work is
        open: a call must not end well only because it had nothing left to start."""
        if self.open_work() is None:
            return "none"
        return f"open since process {os.getpid()}"

    def open_work(self) -> str | None:
        """One line that says what may be tried again; None where everything is final."""
        call = self._call
        if call.looks_on:
            return None
        return open_work(call.root, call.cells(), call.evaluations())

    def rebuild(self) -> None:
        """Report everything finished although a job of this call failed."""
        root, plan = self._call.root, self._call.plan
        if any(existing_scores(root)):
            # Imported here: reading tables costs what no other call of the Snakefile needs.
            from adhere.reporting import aggregate

            aggregate(root, expected_runs=plan.runs, prices=price_list(plan.project))
