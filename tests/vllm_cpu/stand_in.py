"""A stand-in for ``vllm serve``: replays what the real server, of the version on record, answered.

``vllm serve MODEL --port N …``, as the project itself starts it. ``recordings.json`` says what is
answered, how the process ends, and what it prints then. A chat request that differs from a recorded
one in its seed only gets that one's answer; anything else that is not on record gets 501, and a
command line that is not on record ends as the real server ends with a wrong one.
"""

import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Any

CHAT = "/v1/chat/completions"
SAFE = "--no-enable-chunked-prefill"


class Replay:
    """The recordings, and how far they have been told."""

    def __init__(self, recordings: dict[str, Any], arguments: list[str]) -> None:
        self.get = recordings["get"]
        self.ends = recordings["ends"]
        self.deadly = SAFE not in arguments
        self.lethal = self.ends["death"]["request"]["messages"]
        self.chats = 0
        self.in_flight = 0
        self.lock = threading.Lock()
        self._answers: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for exchange in recordings["exchanges"]:
            for request in (exchange["request"], without_seed(exchange["request"])):
                key = (exchange["path"], canonical(request))
                self._answers.setdefault(key, []).append(exchange["reply"])

    def kills(self, request: dict[str, Any]) -> bool:
        """Whether the real engine dies of a request, as it is started."""
        return self.deadly and "seed" in request and request["messages"] == self.lethal

    def answer(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """Return status and body; equal requests get their answers in the order on record."""
        with self.lock:
            self.chats += path == CHAT
            for asked in (request, without_seed(request)):
                replies = self._answers.get((path, canonical(asked)))
                if replies:
                    return replies.pop(0) if len(replies) > 1 else replies[0]
        message = f"not on record, run `make test-vllm RECORD=1`: {path} {canonical(request)}"
        return {"status": 501, "body": {"error": {"message": message}}}


def canonical(request: dict[str, Any]) -> str:
    """Return a request as a key."""
    return json.dumps(request, sort_keys=True)


def without_seed(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request without its seed."""
    return {name: value for name, value in request.items() if name != "seed"}


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    replay: Replay

    def do_GET(self) -> None:
        """Answer a model list, a version or figures."""
        recorded = self.replay.get.get(self.path)
        if self.path == "/metrics":
            recorded = recorded["used" if self.replay.chats else "fresh"]
        self._send(404 if recorded is None else 200, recorded)

    def do_POST(self) -> None:
        """Answer a chat request, or count tokens."""
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == CHAT and request.get("stream"):
            self._stream()
        elif self.path == CHAT and self.replay.kills(request):
            death = self.replay.ends["death"]
            self._send(death["reply"]["status"], death["reply"]["body"])
            leave(death)
        else:
            reply = self.replay.answer(self.path, request)
            self._send(reply["status"], reply["body"])

    def _stream(self) -> None:
        """Begin an answer that does not end."""
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        self.replay.in_flight += 1
        self.wfile.write(self.replay.ends["in_flight"]["first_line"].encode() + b"\n")
        threading.Event().wait()

    def _send(self, status: int, body: Any) -> None:
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def leave(end: dict[str, Any]) -> None:
    """End the process as the real one ended: with an exit status, or by a signal."""
    print("\n".join(end["log"]), flush=True)
    if end["exit_status"] < 0:
        signal.signal(-end["exit_status"], signal.SIG_DFL)
        os.kill(os.getpid(), -end["exit_status"])
    os._exit(end["exit_status"])


def main(recordings: Path, arguments: list[str]) -> None:
    """Serve until a signal comes."""
    known = json.loads(recordings.read_text("utf-8"))
    port = arguments[arguments.index("--port") + 1]
    if set(arguments) - {*known["words"], arguments[1], port}:
        leave(known["ends"]["bad_argument"])
    Handler.replay = Replay(known, arguments)
    server = ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)

    def stop(_signum: int, _frame: FrameType | None) -> None:
        end = known["ends"]["in_flight" if Handler.replay.in_flight else "idle"]
        # One that had to be killed does not go by itself.
        if end["exit_status"] != -signal.SIGKILL:
            leave(end)

    signal.signal(signal.SIGTERM, stop)
    server.serve_forever()


if __name__ == "__main__":
    main(Path(__file__).with_name("recordings.json"), sys.argv[1:])
