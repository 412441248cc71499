"""Questions about a port of this machine: who listens, and which models are served there."""

import contextlib
import http.client
import socket
from typing import Any
from urllib.parse import urlsplit

import psutil

from adhere import jsonio

_TIMEOUT_S = 5.0
_LOCAL = ("127.0.0.1", "0.0.0.0", "::", "::1", "::ffff:127.0.0.1")


def free_port() -> int:
    """Return a port of the loopback interface that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def get_json(root: str, path: str) -> Any:
    """Return the JSON that ``GET root/path`` answers with status 200, else None."""
    body = get(root, path)
    try:
        return None if body is None else jsonio.loads(body)
    except ValueError:
        return None


def get(root: str, path: str) -> bytes | None:
    """Return what ``GET root/path`` answers with status 200, else None.

    Asked directly: proxy settings of the environment are not for this machine.
    """
    connection = http.client.HTTPConnection(urlsplit(root).netloc, timeout=_TIMEOUT_S)
    with contextlib.closing(connection):
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
            return body if response.status == 200 else None
        except (OSError, http.client.HTTPException):
            return None


def model_cards(root: str) -> list[dict[str, Any]] | None:
    """Return the entries of ``GET /v1/models``, None when nothing (sensible) answers yet."""
    answer = get_json(root, "/v1/models")
    entries = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(entries, list):
        return None
    return [entry for entry in entries if isinstance(entry, dict) and "id" in entry]


def listeners(port: int) -> set[int | None]:
    """Return the pids listening on a port of this machine; None stands for another user's.

    Empty as well where the system does not tell (macOS, to other users than root).
    """
    try:
        connections = psutil.net_connections("tcp")
    except psutil.AccessDenied:
        return set()
    return {
        connection.pid
        for connection in connections
        if connection.status == psutil.CONN_LISTEN
        and connection.laddr
        and connection.laddr.port == port
        and connection.laddr.ip in _LOCAL
    }


def describe(pids: set[int | None]) -> str:
    """Name processes for an error message."""
    names = []
    for pid in pids - {None}:
        with contextlib.suppress(psutil.NoSuchProcess):
            names.append(f"process {pid} ({psutil.Process(pid).name()})")
    return ", ".join(sorted(names)) or "another user's process"
