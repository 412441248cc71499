"""Measure and print tables: ``python -m bench [clients pipeline scoring planning faults]``."""

import argparse
import sys
from collections.abc import Callable, Iterator
from typing import Final

from bench import clients, faults, pipeline, planning, scoring
from bench.figures import Figure, show

_TABLES: Final[dict[str, tuple[str, Callable[[], Iterator[Figure]]]]] = {
    "clients": ("The client beside others, answers after 200 ms", clients.figures),
    "pipeline": ("End to end", pipeline.figures),
    "scoring": ("Scoring", scoring.figures),
    "planning": ("Planning: 100 models × 2 modes × 3 runs × 4 judges", planning.figures),
    "faults": ("Faults", faults.figures),
}


def main() -> int:
    """Print the tables asked for; 1 where a target was missed."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=", ".join(_TABLES))
    chosen: list[str] = parser.parse_args().tables or list(_TABLES)
    unknown = sorted(set(chosen) - set(_TABLES))
    if unknown:
        parser.error(f"there is no table {', '.join(unknown)}; there are: {', '.join(_TABLES)}")
    passed = [show(title, figures()) for title, figures in (_TABLES[name] for name in chosen)]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
