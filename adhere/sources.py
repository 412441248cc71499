"""Known datasets: where each comes from, and which checksums its file may have.

Pure but for the record of checksums that lies beside a dataset's file. A dataset without an entry
in data/sources.yaml is its owner's business and never refused.
"""

import logging
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from adhere.config.fields import Strict
from adhere.config.load import parse
from adhere.config.strict_yaml import read_yaml
from adhere.data import Dataset, load_cached
from adhere.errors import DataError
from adhere.jsonio import read_json, write_json

_LOG = logging.getLogger("adhere")
SOURCES = "data/sources.yaml"


def _sha256(text: str) -> str:
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise ValueError("must be a SHA-256: 64 digits 0-9, a-f")
    return text


def _address(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s/]+/\S*", text):
        raise ValueError("must be an address that begins with https:// or http://")
    return text


def _one_unknown(versions: dict[str, str | None]) -> dict[str, str | None]:
    if sum(checksum is None for checksum in versions.values()) > 1:
        raise ValueError("only one version may be without a checksum: nothing would tell two apart")
    return versions


Sha256 = Annotated[str, AfterValidator(_sha256)]


class Source(Strict):
    """Where one dataset comes from, and the checksums of its versions; None is unknown."""

    title: Annotated[str, Field(min_length=1)]
    urls: Annotated[list[Annotated[str, AfterValidator(_address)]], Field(min_length=1)]
    versions: Annotated[dict[str, Sha256 | None], Field(min_length=1), AfterValidator(_one_unknown)]

    @property
    def unknown_version(self) -> str | None:
        """Name of the version whose checksum is not known, None where all are."""
        return next((name for name, checksum in self.versions.items() if checksum is None), None)


class Sources(Strict):
    """data/sources.yaml: the known datasets by their names in configs/global.yaml."""

    datasets: dict[str, Source] = Field(default_factory=dict)


class Seen(Strict):
    """A checksum and the moment it was recorded."""

    sha256: Sha256
    recorded: str


class Record(Strict):
    """``{dataset}.checksum.json``: the first file of the unknown version, and accepted ones."""

    dataset: str
    first: Seen | None = None
    accepted: list[Seen] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Identity:
    """What a dataset's file is: a version by name, or an accepted file of none (None).

    ``record`` is what is kept beside the file, or is to be where ``is_new``.
    """

    sha256: str
    version: str | None
    how: Literal["known", "first", "recorded", "accepted"]
    record: Record | None = None
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """One known dataset: its name, its file, and its entry in data/sources.yaml."""

    name: str
    path: Path
    source: Source

    @property
    def record_file(self) -> Path:
        """Where checksums are recorded, beside the dataset's file."""
        return self.path.with_name(f"{self.name}.checksum.json")

    def identify(self, sha256: str, *, accept: bool, shown: str, remedy: str) -> Identity:
        """Say what a file with this checksum is; ``shown`` names it in messages.

        Raises DataError where it matches nothing and is not to be accepted: which checksum was
        found, which are known, and, in the words of ``remedy``, what to do.
        """
        for version, checksum in self.source.versions.items():
            if checksum == sha256:
                return Identity(sha256, version, "known")
        record = self._record()
        unknown = self.source.unknown_version
        if unknown is not None and record.first is not None and record.first.sha256 == sha256:
            return Identity(sha256, unknown, "recorded", record)
        if any(seen.sha256 == sha256 for seen in record.accepted):
            return Identity(sha256, None, "accepted", record)
        seen = Seen(sha256=sha256, recorded=datetime.now(UTC).isoformat(timespec="seconds"))
        if unknown is not None and record.first is None:
            changed = record.model_copy(update={"first": seen})
            return Identity(sha256, unknown, "first", changed, is_new=True)
        if accept:
            changed = record.model_copy(update={"accepted": [*record.accepted, seen]})
            return Identity(sha256, None, "accepted", changed, is_new=True)
        raise DataError(self._refusal(sha256, record, shown, remedy))

    def keep(self, identity: Identity) -> None:
        """Record what is new. Raises DataError where that cannot be written."""
        if identity.is_new and identity.record is not None:
            write_json(self.record_file, identity.record.model_dump())

    def describe(self, identity: Identity) -> str:
        """Say in a few words what a file is, for people."""
        title = self.source.title
        if identity.version is None:
            return f"no known version of {title}, accepted"
        if identity.how == "first":
            return (
                f"taken for {title} {identity.version}, whose checksum is not known: later files "
                "must match this one"
            )
        return f"{title} {identity.version}"

    def _record(self) -> Record:
        path = self.record_file
        if not path.exists():
            return Record(dataset=self.name)
        content = read_json(path)
        if not isinstance(content, dict):
            raise DataError(f"{path}: must hold an object: remove it to begin a new record")
        return parse(Record, content, str(path))

    def _refusal(self, sha256: str, record: Record, shown: str, remedy: str) -> str:
        known = [f"{name}: {sha}" for name, sha in self.source.versions.items() if sha]
        unknown = self.source.unknown_version
        if record.first is not None and unknown is not None:
            first = record.first
            known.append(f"{unknown}: {first.sha256} (that of the first file, {first.recorded})")
            remedy += f" If the first file was a wrong one, remove {self.record_file}."
        known += [f"accepted {seen.recorded}: {seen.sha256}" for seen in record.accepted]
        return "\n".join(
            (
                f"{shown}: dataset {self.name!r}: no known version of {self.source.title}, by the "
                "checksum of its content:",
                *(f"  {line}" for line in (f"found: {sha256}", *known)),
                remedy,
            )
        )


def load_sources(root: Path) -> dict[str, Source]:
    """Read data/sources.yaml below a project's folder; nothing is known where there is none.

    Raises ConfigError naming file, key, what was found and what is allowed.
    """
    path = root / SOURCES
    return parse(Sources, read_yaml(path, SOURCES), SOURCES).datasets if path.exists() else {}


class Datasets:
    """The datasets of one plan, each checked against what is known of it when it is loaded.

    No network is used. ``accept`` says that files of no known version are meant.
    """

    def __init__(self, root: Path, *, accept: bool) -> None:
        self._sources = load_sources(root)
        self._accept = accept
        self._identities: dict[tuple[str, str], tuple[Known, Identity]] = {}

    def load(self, name: str, path: Path) -> Dataset:
        """Load a dataset. Raises DataError where it is wrong, or no version that is known."""
        source = self._sources.get(name)
        if source is not None and not path.exists():
            raise DataError(
                f"{path}: dataset {name!r} is not there: run `snakemake fetch --config "
                f"datasets={name}`, or put a copy there with `python scripts/fetch.py --dataset "
                f"{name} --from FILE` (see data/README.md)"
            )
        dataset = load_cached(name, path)
        if source is not None and (name, dataset.sha256) not in self._identities:
            known = Known(name, path, source)
            remedy = (
                "Get the right file with `snakemake fetch`. If this one is meant, say so once with "
                "--config accept_dataset=true. A dataset of your own needs a name of its own in "
                "configs/global.yaml."
            )
            identity = known.identify(
                dataset.sha256, accept=self._accept, shown=str(path), remedy=remedy
            )
            self._identities[name, dataset.sha256] = (known, identity)
        return dataset

    def what_is(self, dataset: Dataset) -> str:
        """Say in a few words which version a loaded dataset is."""
        found = self._identities.get((dataset.name, dataset.sha256))
        return "–" if found is None else found[0].describe(found[1])

    def record(self) -> None:
        """Record checksums that are new; warn where that is not possible."""
        for known, identity in self._identities.values():
            if not identity.is_new:
                continue
            _LOG.warning(
                "%s: %s; checksum %s", known.path, known.describe(identity), identity.sha256
            )
            try:
                known.keep(identity)
            except DataError as error:
                # The folder of a shared copy may be read-only; every result has the checksum.
                _LOG.warning("%s: a later file cannot be compared with this one", error)
