"""One check, in the process forked for it: run the source, convert the result, send one frame.

Whatever a checker does to this process ends with it. What must hold is that an honest checker's
result arrives as it is, and that no result is mistaken for another's.
"""

import builtins
import sys
from os import _exit, read, write
from sys import exc_info, setrecursionlimit
from types import ModuleType, TracebackType
from typing import Final, NoReturn

from adhere.checkers.frames import MAX_TEXT, NONCE_BYTES, REPLY, Kind, decode, encode

# A checker may replace builtins or attributes of shared modules (``builtins.len = …``). A function
# finds builtins where its module's ``__builtins__`` pointed when it was defined: a copy keeps the
# functions below whole. For the same reason C functions and kinds are bound by name here.
globals()["__builtins__"] = dict(vars(builtins))
_TRUE, _FALSE, _NONE = int(Kind.TRUE), int(Kind.FALSE), int(Kind.NONE)
_TEXT, _ERROR, _NOT_DEFINED = int(Kind.TEXT), int(Kind.ERROR), int(Kind.NOT_DEFINED)
_type_name = type.__dict__["__name__"].__get__
_type_module = type.__dict__["__module__"].__get__

# Exit codes that say why there is no result; a checker may exit with them, too.
EXIT_UNREPORTED: Final = 70
EXIT_UNCONFINED: Final = 72

_FILE: Final = "<checker>"
_MODULE: Final = "checker"
_FUNCTION: Final = "check_following"
_MISSING: Final = object()
_RECURSION_LIMIT: Final = 1000
_MESSAGE_CHARS: Final = 300
_DETAIL_CHARS: Final = 500


def rehearse() -> None:
    """Run a check in the server: what Python looks up once, it then has not to look up in each."""
    _check(b"import re\ndef check_following(response): re.search('a', response)", b"a")
    del sys.modules[_MODULE]
    sys.modules["re"].purge()


def run(question: int, answer: int, source: bytes, text: bytes) -> NoReturn:
    """Run one check and write its result to the pipe ``answer``; never returns.

    The nonce that marks the result as genuine is read from the pipe ``question`` only now that the
    checker has returned, so it is in no frame, closure or object that a checker could come across.
    """
    code = EXIT_UNREPORTED
    try:
        kind, payload = _check(source, text)
        # Where the checker took the nonce this is what the server calls no result.
        _send(answer, read(question, NONCE_BYTES) + REPLY.pack(kind, len(payload)) + payload)
        code = 0
    finally:
        # Without cleaning up: exit handlers and finalizers of the checker do not run.
        _exit(code)


def _check(source: bytes, text: bytes) -> tuple[int, bytes]:
    """Run a source whole, in one fresh namespace, and call its check_following."""
    try:
        # A real module, since dataclasses, typing and enum look up the module of what they define.
        module = ModuleType(_MODULE)
        sys.modules[_MODULE] = module
        namespace = module.__dict__
        exec(compile(decode(source), _FILE, "exec", dont_inherit=True), namespace)
        function = namespace.get(_FUNCTION, _MISSING)
        if function is _MISSING:
            return _NOT_DEFINED, encode(f"the source defines no {_FUNCTION}")
        value = function(decode(text))
        setrecursionlimit(_RECURSION_LIMIT)
        return _convert(value)
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything, SystemExit too
        setrecursionlimit(_RECURSION_LIMIT)
        return _ERROR, _describe(error, exc_info()[2])


def _convert(value: object) -> tuple[int, bytes]:
    """Convert what a checker returned, by identity and exact type only.

    True and False are verdicts, None is "does not apply", an exact ``str`` is text. Anything else
    is an error that names the type, also what is merely true or false (0, a match, numpy's bool):
    no method of the value is called, and nothing is guessed.
    """
    if value is True:
        return _TRUE, b""
    if value is False:
        return _FALSE, b""
    if value is None:
        return _NONE, b""
    if type(value) is str:
        data = encode(value) if len(value) <= MAX_TEXT else b""
        if len(value) > MAX_TEXT or len(data) > MAX_TEXT:
            most = f"{MAX_TEXT >> 20} MiB of UTF-8"
            return _ERROR, encode(f"returned a text of {len(value)} characters, more than {most}")
        return _TEXT, data
    return _ERROR, encode(f"returned {_name(value)}; allowed are True, False, None and a text")


def _name(value: object) -> str:
    """Return the name of a value's type, with its module where that is not plain."""
    kind = type(value)
    name, module = _type_name(kind), _type_module(kind)
    plain = type(module) is not str or module in ("builtins", _MODULE)
    return str(name if plain else f"{module}.{name}")[:_MESSAGE_CHARS]


def _describe(error: BaseException, trace: TracebackType | None) -> bytes:
    """Return "Type: message (checker line n)", n being the innermost line of the source."""
    line = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == _FILE:
            line = trace.tb_lineno
        trace = trace.tb_next
    message = _message(error)
    if line is None and isinstance(error, SyntaxError):
        line, message = error.lineno, _message(error.msg)
    detail = _name(error) + (f": {message}" if message else "")
    detail = detail[:_DETAIL_CHARS] + (f" (checker line {line})" if line is not None else "")
    return encode(detail)


def _message(error: object) -> str:
    """Return an error's message on one line, bounded; empty where it cannot be had."""
    try:
        head = str.__getitem__(str(error), slice(0, 10 * _MESSAGE_CHARS))
        return " ".join(str.split(head))[:_MESSAGE_CHARS]
    except BaseException:  # noqa: BLE001 - __str__ of a foreign exception may raise anything
        return ""


def _send(answer: int, frame: bytes) -> None:
    """Write a whole frame."""
    while frame:
        frame = frame[write(answer, frame) :]
