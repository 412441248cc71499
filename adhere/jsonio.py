"""Strict JSON in and out: UTF-8 with or without BOM, plain or gzip, no NaN, atomic writes."""

import codecs
import gzip
import hashlib
import json
import math
import os
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from adhere.errors import DataError, reason

_BOM = b"\xef\xbb\xbf"
_GZIP_MAGIC = b"\x1f\x8b"


def clean_text(text: str) -> str:
    """Return ``text`` with every lone surrogate replaced by U+FFFD, so that it can be encoded."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def clean(value: Any) -> Any:
    """Return a JSON value with the lone surrogates in all its strings replaced."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [clean(element) for element in value]
    if isinstance(value, dict):
        return {clean_text(key): clean(element) for key, element in value.items()}
    return value


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits:.40} is beyond the largest number")
    return number


def _integer(digits: str) -> int | float:
    # As orjson reads them: what 64 bits do not hold is a float.
    try:
        number = int(digits)
    except ValueError:  # thousands of digits, which Python refuses
        return _finite(digits)
    return number if -(2**63) <= number < 2**64 else _finite(digits)


def loads(data: bytes | str) -> Any:
    """Parse strict JSON; a BOM is dropped and lone surrogates are replaced.

    Of a key that is given twice the last value counts. Raises ValueError for anything else, NaN,
    Infinity and numbers beyond the largest float included, with line and column where there is
    one; RecursionError for text that is nested too deeply.
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    raw = raw.removeprefix(_BOM)
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        if b"\\u" not in raw and b"\xed" not in raw:
            raise ValueError(str(error)) from None
    # orjson refuses escaped lone surrogates, which providers do send; the standard parser reads
    # them, and everything else that is wrong stays wrong.
    text = raw.decode("utf-8", "surrogatepass")
    value = json.loads(
        text, parse_constant=_reject_constant, parse_float=_finite, parse_int=_integer
    )
    return clean(value)


def read_bytes(path: Path) -> bytes:
    """Return a file's content, decompressed where it is gzip (by content, not by name).

    Raises DataError naming the file when it cannot be read.
    """
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if raw.startswith(_GZIP_MAGIC) else raw
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read: {reason(error)}") from error


def read_json(path: Path, *, unique_keys: bool = False) -> Any:
    """Parse one JSON file; ``unique_keys`` refuses a key that an object has twice.

    Files that people write are read so: of what stands there twice, one is a mistake. Raises
    DataError naming file, line and column, or the key and where it is.
    """
    return _parsed(read_bytes(path), str(path), unique_keys=unique_keys)


def _parsed(raw: bytes, path: str, line: int | None = None, *, unique_keys: bool) -> Any:
    """Parse a file, or one line of it."""
    shown = path if line is None else f"{path}: line {line}"
    try:
        value = loads(raw)
        repeated = _repeated_key(raw) if unique_keys else None
    except (ValueError, RecursionError) as error:
        # Within one line the parser counts that line as the first.
        found = str(error) if line is None else str(error).replace("line 1 column", "column")
        raise DataError(f"{shown}: not valid JSON: {_encoding(raw) or found}") from None
    if repeated is not None:
        path, key = repeated
        where = f" in {path} (positions from 0)" if path else ""
        raise DataError(f"{shown}: key {key!r:.60} is given twice{where}: keep one of them")
    return value


def _encoding(raw: bytes) -> str | None:
    """Say what keeps bytes from being a text in UTF-8; None where nothing does."""
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) or b"\x00" in raw[:4]:
        return "the file is in UTF-16 or UTF-32: save it as UTF-8"
    try:
        raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        byte = raw[error.start]
        return f"byte {error.start + 1} is {byte:#04x}, which is no UTF-8: save the file as UTF-8"
    return None


def _repeated_key(raw: bytes) -> tuple[str, str] | None:
    """Return the path to an object of valid JSON that has a key twice, and the key."""
    found: list[tuple[dict[str, Any], str]] = []

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            keys = [key for key, _ in pairs]
            found.append((content, next(key for key in keys if keys.count(key) > 1)))
        return content

    text = raw.removeprefix(_BOM).decode("utf-8", "surrogatepass")
    whole = json.loads(text, object_pairs_hook=made)
    if not found:
        return None
    # The last to be made lies in no object that lost it by the same mistake.
    wanted, key = found[-1]
    path = next(path for path, content in _objects(whole, ()) if content is wanted)
    return ".".join(path), key


def _objects(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield every object inside a JSON value with the path to it."""
    if isinstance(value, dict):
        yield path, value
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, element in inside:
        if isinstance(element, dict | list):
            yield from _objects(element, (*path, str(key)))


def lines(raw: bytes) -> Iterator[bytes]:
    r"""Yield lines split on ``\n`` only (U+2028 and U+0085 are text), without blank ones."""
    for line in raw.split(b"\n"):
        if line.strip():
            yield line


def read_jsonl(path: Path, *, unique_keys: bool = False) -> list[Any]:
    """Parse one JSON value a line. Raises DataError naming file and line."""
    return [value for _, value in numbered_lines(path, unique_keys=unique_keys)]


def numbered_lines(path: Path, *, unique_keys: bool = False) -> Iterator[tuple[int, Any]]:
    """Yield the number (from 1) and the value of every line that is not blank.

    ``unique_keys`` is as in ``read_json``. Raises DataError naming file and line.
    """
    for number, line in enumerate(read_bytes(path).removeprefix(_BOM).split(b"\n"), start=1):
        if line.strip():
            yield number, _parsed(line, str(path), number, unique_keys=unique_keys)


def dumps(value: Any, *, indent: bool = False) -> bytes:
    """Serialise to UTF-8 JSON without ASCII escapes."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else 0)


def canonical(value: Any) -> bytes:
    """Serialise with sorted keys and no blanks: equal values give equal bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def fingerprint(value: Any) -> str:
    """Return the SHA-256 (64 hex digits) of a value's canonical form."""
    return hashlib.sha256(canonical(value)).hexdigest()


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file so that readers see the old content or the new, never a part of it.

    Raises DataError naming the file when it cannot be written (a full disk, a missing right).
    """
    try:
        _replace(path, data)
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(
            f"{path}: cannot be written: {reason}: make room, or correct the path or its rights, "
            "and start again"
        ) from error


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_json(path: Path, value: Any, *, indent: bool = True) -> None:
    """Serialise ``value`` and write it atomically, with a final newline."""
    write_bytes(path, dumps(value, indent=indent) + b"\n")


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    write_bytes(path, text.encode("utf-8"))
