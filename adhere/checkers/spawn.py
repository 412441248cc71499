"""Start a server's interpreter: what it is given, and that this is all."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

import adhere

# Run with the package's folder and the places of installed libraries as arguments. Checkers see
# the standard library and what is installed, not the project.
_BOOT: Final = """
import sys
root, *installed = sys.argv[1:]
del sys.argv[1:]
sys.path.append(root)
from adhere.checkers.server import main
sys.path.remove(root)
sys.path.extend(installed)
main()
"""
_OPTIONS: Final = ("-s", "-S", "-P", "-B", "-X", "utf8", "-W", "ignore", "-c")
# All a checker finds in its environment; values that could change a verdict are fixed.
_ENVIRONMENT: Final = {
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def spawn(connection: socket.socket) -> subprocess.Popen[bytes]:
    """Start a server with ``connection`` as standard input and nothing else inherited."""
    root = Path(adhere.__file__).resolve().parents[1]
    environment = dict(_ENVIRONMENT)
    if "LD_LIBRARY_PATH" in os.environ:
        # Some clusters' Python does not start without it.
        environment["LD_LIBRARY_PATH"] = os.environ["LD_LIBRARY_PATH"]
    return subprocess.Popen(
        [sys.executable, *_OPTIONS, _BOOT, str(root), *_installed()],
        stdin=connection.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd="/",
        env=environment,
        start_new_session=True,
    )


def _installed() -> list[str]:
    """Return the folders of installed libraries on this process's path."""
    return [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
