"""Questions of the rules for teams: ``gate``, ``baseline``, ``archive`` and ``spotcheck``."""

import os

from adhere import files
from adhere.jsonio import read_json
from adhere.workflow.call import Call


class Teams:
    """What a call hands to the rules that hold a change against others."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def evaluated(self, _wildcards: object = None) -> list[list[str | int]]:
        """The scored files of this call, as [model, mode, run, dataset, judge]."""
        cells = [(each.cell, each.judge) for each in self._call.evaluations()]
        return [[cell.model, cell.mode, cell.run, cell.dataset, judge] for cell, judge in cells]

    def this_call(self, _wildcards: object = None) -> str:
        """Parameter that differs in each call: what reports on a call is made in each."""
        return f"process {os.getpid()}"

    def gate_code(self) -> int:
        """Return the exit code that the gate asks for; 0 where no gate was asked for."""
        if "gate" not in self._call.targets:
            return 0
        return int(read_json(files.gate(self._call.root))["exit_code"])
