"""Get a dataset's file from its public home or from a copy: a valid one, whole, or none at all."""

import asyncio
import gzip
import io
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adhere.config import Retry
from adhere.data import Dataset, Row, as_dataset, as_rows, is_jsonl, load_rows
from adhere.dataset_notes import notes
from adhere.download import MAX_BYTES, download, without_secrets
from adhere.errors import DataError
from adhere.jsonio import dumps, fingerprint, loads, write_bytes
from adhere.sources import Identity, Known

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A dataset that is to lie in ``path``, and where it may come from: the first that has it.

    ``known`` is None for a dataset without an entry in data/sources.yaml; ``accept`` says that a
    file of no known version is meant.
    """

    name: str
    path: Path
    origins: Sequence[str]
    known: Known | None
    accept: bool = False
    retry: Retry = field(default_factory=lambda: Retry())


@dataclass(frozen=True, slots=True)
class _Content:
    """What an origin holds: its bytes, decompressed, and the rows in them."""

    raw: bytes
    jsonl: bool
    rows: list[Row]


def is_address(origin: str) -> bool:
    """Whether an origin is an address rather than a file."""
    return re.match(r"https?://", origin, re.IGNORECASE) is not None


def fetch(wanted: Wanted) -> list[str]:
    """Put a dataset where it belongs and return what became of it, as lines for people.

    The file that is there is replaced only by a valid one, at once. Raises DataError saying for
    every origin why it has none.
    """
    problems = []
    for origin in wanted.origins:
        try:
            return _fetch_from(wanted, origin)
        except DataError as error:
            problems.append(str(error))
    problems.append(f"{wanted.path}: left as it is")
    raise DataError("\n".join(problems))


def _fetch_from(wanted: Wanted, origin: str) -> list[str]:
    shown = without_secrets(origin) if is_address(origin) else origin
    raw = asyncio.run(download(origin, wanted.retry)) if is_address(origin) else _read(origin)
    content = _parse(raw, shown)
    dataset = as_dataset(wanted.name, wanted.path, content.rows, shown)
    identity = _identify(wanted, dataset.sha256, shown)
    before = _present(wanted.path)
    if before != dataset.sha256:
        write_bytes(wanted.path, _stored(content, wanted.path))
    if wanted.known is not None and identity is not None:
        wanted.known.keep(identity)
    return _report(wanted, dataset, identity, shown, before)


def _read(origin: str) -> bytes:
    try:
        return Path(origin).read_bytes()
    except OSError as error:
        raise DataError(f"{origin}: cannot be read: {error.strerror}: name a file") from None


def _identify(wanted: Wanted, sha256: str, shown: str) -> Identity | None:
    if wanted.known is None:
        return None
    remedy = (
        "If this is the file you mean, say so with --accept, or, in `snakemake fetch`, with "
        "--config accept_dataset=true."
    )
    return wanted.known.identify(sha256, accept=wanted.accept, shown=shown, remedy=remedy)


def _present(path: Path) -> str | None:
    """Return the checksum of the file that is there, None where there is no usable one."""
    try:
        return fingerprint(load_rows(path))
    except DataError:
        return None


def _parse(raw: bytes, shown: str) -> _Content:
    """Read a JSON list or JSONL, plain or gzip, by content. Raises DataError."""
    raw = _decompressed(raw, shown)
    start = raw.removeprefix(_BOM).lstrip()[:100]
    if start.startswith(b"<"):
        raise DataError(
            f"{shown}: is a web page, not a dataset: the address leads to a page about the file, "
            "or to one that asks for something: open it in a browser, or get the file another way"
        )
    if start.startswith(b"version https://git-lfs"):
        raise DataError(f"{shown}: is a Git LFS pointer: get the file that it stands for")
    jsonl = not start.startswith(b"[")
    try:
        content = _lines(raw, shown) if jsonl else loads(raw)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{shown}: not valid JSON: {error}: the file is damaged or cut") from None
    return _Content(raw, jsonl, as_rows(content, shown))


def _lines(raw: bytes, shown: str) -> list[Any]:
    values = []
    for number, line in enumerate(raw.removeprefix(_BOM).split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            values.append(loads(line))
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"{shown}: line {number}: not valid JSON: {error}: the file is damaged, or "
                "neither a JSON list nor one item a line"
            ) from None
    return values


def _decompressed(raw: bytes, shown: str) -> bytes:
    if not raw.startswith(b"\x1f\x8b"):
        return raw
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
            content = stream.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{shown}: not valid gzip: {error}: the file is damaged or cut") from None
    if len(content) > MAX_BYTES:
        raise DataError(f"{shown}: holds more than {MAX_BYTES >> 20} MiB: not a dataset")
    return content


def _stored(content: _Content, path: Path) -> bytes:
    """Return what is written: the very bytes where the form is that of the file's name."""
    raw = content.raw
    if content.jsonl != is_jsonl(path):
        if is_jsonl(path):
            raw = b"".join(dumps(row) + b"\n" for row in content.rows)
        else:
            raw = dumps(content.rows) + b"\n"
    return gzip.compress(raw, mtime=0) if path.name.endswith(".gz") else raw


def _report(
    wanted: Wanted, dataset: Dataset, identity: Identity | None, shown: str, before: str | None
) -> list[str]:
    constraints = sum(len(row["constraints"]) for row in dataset.rows)
    counts = f"{dataset.total:,} items, {constraints:,} constraints"
    same = before == dataset.sha256
    lines = [f"{wanted.path}: {counts}, from {shown}" + (" (as it was)" if same else "")]
    what = wanted.known.describe(identity) if wanted.known and identity else "a dataset of your own"
    lines.append(f"  checksum {dataset.sha256}: {what}")
    if before is not None and not same:
        lines.append(f"  in place of the file with checksum {before}")
    return lines + [f"  {note}" for note in notes(dataset.rows)]
