"""Questions of the rule ``score``, which accounts for recorded verdicts."""

from adhere import files
from adhere.status import policy_differs, score_damaged
from adhere.workflow.call import Call
from adhere.workflow.wildcards import Wildcards, evaluation_of


class Scoring:
    """Which scores a call is to have, and which are to be made again."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def wanted(self, _wildcards: object = None) -> list[str]:
        """Files that this call's summary waits for. Raises AdhereError where there can be none."""
        self._call.check_selected(judges=True)
        return self.paths()

    def paths(self) -> list[str]:
        """The same without a look at what is selected."""
        root = self._call.root
        return [str(files.accuracy(root, evaluation)) for evaluation in self._call.evaluations()]

    def changed(self, wildcards: Wildcards) -> list[str]:
        """Evidence that a score is to be made again: it was made under another policy, it cannot
        be read, or its results file is gone."""
        call, evaluation = self._call, evaluation_of(wildcards)
        accuracy = files.accuracy(call.root, evaluation)
        gone = call.judges and not files.results(call.root, evaluation).exists()
        unseen = call.changes.unseen(accuracy)
        return call.changes.evidence(
            policy_changed=unseen and policy_differs(call.plan.project, evaluation),
            score_damaged=score_damaged(call.root, evaluation),
            results_file_gone=gone and accuracy.exists(),
        )
