"""Run the published checkers of IFBench or IFEval over cases: JSON lines in, JSON lines out.

Runs in an environment of its own, as ``python oracle.py ifbench|ifeval < cases > verdicts``. A case
is ``[instruction, arguments, text]``, a verdict true, false, or null where the checker needs data
that is not there.
"""

import contextlib
import importlib
import importlib.util
import json
import sys
import types
from pathlib import Path
from typing import Any


def _without(*names: str) -> None:
    """Let modules be imported that the checkers import and never use."""
    for name in names:
        module = types.ModuleType(name)
        vars(module)["download"] = print
        sys.modules[name] = module


def _checkers(name: str) -> dict[str, Any]:
    """Return the checkers by instruction, without importing the harness around them."""
    if name == "ifbench":
        _without("spacy", "spacy.cli")
        return dict(importlib.import_module("ifbench.instructions_registry").INSTRUCTION_DICT)
    found = importlib.util.find_spec("lm_eval")
    assert found is not None and found.submodule_search_locations
    folder = Path(found.submodule_search_locations[0])
    for package in ("lm_eval", "lm_eval.tasks", "lm_eval.tasks.ifeval"):
        module = types.ModuleType(package)
        module.__path__ = [str(folder.joinpath(*package.split(".")[1:]))]
        sys.modules[package] = module
    # Language detection draws random numbers.
    importlib.import_module("langdetect").DetectorFactory.seed = 0
    registry = importlib.import_module("lm_eval.tasks.ifeval.instructions_registry")
    return dict(registry.INSTRUCTION_DICT)


def _verdict(
    checkers: dict[str, Any], instruction: str, arguments: dict[str, Any], text: str
) -> bool | None:
    try:
        checker = checkers[instruction](instruction)
        checker.build_description(**arguments)
        return bool(text.strip() and checker.check_following(text))
    except LookupError:
        return None


def main() -> None:
    """Judge the cases of standard input."""
    with contextlib.redirect_stdout(sys.stderr):
        checkers = _checkers(sys.argv[1])
        verdicts = [_verdict(checkers, *json.loads(line)) for line in sys.stdin]
    sys.stdout.writelines(f"{json.dumps(verdict)}\n" for verdict in verdicts)


if __name__ == "__main__":
    main()
