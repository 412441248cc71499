"""Questions of the rules ``judge`` and ``judge_served``, which write results files."""

from pathlib import Path

from adhere import files
from adhere.judging import Judge
from adhere.status import judging_differs, judging_unrecorded, retryable_verdicts
from adhere.workflow.call import Call
from adhere.workflow.gpus import Gpus
from adhere.workflow.wildcards import Wildcards, any_of, evaluation_of


class Judging:
    """How results files are made, and which are to be made again."""

    def __init__(self, call: Call, gpus: Gpus) -> None:
        self._call = call
        self._gpus = gpus
        self._judges = call.plan.project.judges

    def judges(self, *, served: bool) -> str:
        """Pattern of the judges that their job serves itself, or of all others."""
        judges = self._judges.items()
        return any_of(name for name, judge in judges if (judge.local is not None) is served)

    def identity(self, wildcards: Wildcards) -> str:
        """Everything in a judge's configuration that can change a verdict, as text."""
        return Judge(wildcards.judge, self._judges[wildcards.judge]).text

    def gpus(self, wildcards: Wildcards) -> int:
        """GPUs that a judge takes which its job serves. Raises ConfigError without room for it."""
        return self._gpus.of_judge(wildcards.judge)

    def changed(self, wildcards: Wildcards) -> list[str]:
        """Evidence that a results file was made otherwise than it would be now.

        So it is, too, where its prediction file is gone, or its own record.
        """
        call, evaluation = self._call, evaluation_of(wildcards)
        results = files.results(call.root, evaluation)
        judged = results.exists()
        if not judged and self._judges[evaluation.judge].local is not None:
            self._gpus.of_judge(evaluation.judge)  # what finds no room is refused before any job
        gone = call.predicts and not files.prediction(call.root, evaluation.cell).exists()
        dataset = call.datasets.load(evaluation.cell.dataset)
        unseen = call.changes.unseen(results)
        differs = unseen and judging_differs(call.plan.project, evaluation, dataset)
        return call.changes.evidence(
            judge_or_constraints_changed=differs,
            prediction_file_gone=judged and gone,
            judge_run_damaged_or_gone=judging_unrecorded(call.root, evaluation),
        )

    def attempt(self, wildcards: Wildcards) -> str:
        """Parameter that changes when passing failures of the judge are tried again."""
        evaluation = evaluation_of(wildcards)
        failures = retryable_verdicts(self._call.root, evaluation)
        return self._call.attempts.of(files.results(Path(), evaluation), failures)
