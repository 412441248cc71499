"""All verdicts in one ``verdicts.parquet``, one file in memory at a time."""

import tempfile
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from adhere.errors import reason
from adhere.jsonio import clean_text
from adhere.reporting.collect import RESCORE, RunScore
from adhere.scoring.verdicts import NAMES, SCHEMA, TEAM

VERDICTS = "verdicts.parquet"


def combine_verdicts(runs: Iterable[RunScore], results_root: Path, target: Path) -> list[str]:
    """Write the verdicts of all runs to ``target``, atomically, in the order of the runs.

    Returns a sentence for each run whose ``verdicts.parquet`` is missing or of another form; its
    verdicts are left out.
    """
    problems = []
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        temporary = Path(folder) / target.name
        # Files are opened here, since pyarrow would take a path for a URI in places.
        with (
            temporary.open("wb") as sink,
            pq.ParquetWriter(sink, SCHEMA, compression="zstd") as writer,
        ):
            for run in runs:
                path = results_root / run.path.with_name(VERDICTS)
                try:
                    table = _named(_read(path), run)
                except (OSError, KeyError, pa.ArrowException) as error:
                    name = clean_text(run.path.with_name(VERDICTS).as_posix())
                    problems.append(f"verdicts left out: {name}: {reason(error)}: {RESCORE}")
                else:
                    writer.write_table(table)
        temporary.replace(target)
    return problems


def _read(path: Path) -> pa.Table:
    with path.open("rb") as source:
        return pq.ParquetFile(source).read()


def _named(table: pa.Table, run: RunScore) -> pa.Table:
    """Return a table in the common form, names that its file does not know taken from its path."""
    names = {
        "model": run.names.model,
        "mode": run.names.mode,
        "run": run.names.run,
        "judge": run.names.judge,
        "dataset": run.names.dataset,
    }
    for field in TEAM:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(len(table), field.type))
    table = table.select(SCHEMA.names).cast(SCHEMA)
    for name, value in names.items():
        index = SCHEMA.get_field_index(name)
        column = pa.repeat(pa.scalar(value, NAMES.field(name).type), len(table))
        table = table.set_column(index, SCHEMA.field(index), column)
    return table
