"""Checkers that misbehave, by kind, and the process that runs them as another user.

A snippet is the source of a checker. It returns True when it got what it wanted, so True is a
defeat; False, or ending in any way, is not. Three names stand for what the test prepares:
``EVIDENCE`` is a folder that anybody may write to, with a file ``secret.txt``; ``PORT`` is a port
on 127.0.0.1 with a TCP and a UDP listener; ``LISTENER`` is the name of a listening unix socket, in
that folder and in the abstract namespace.
"""

from tests.hostile.files import SNIPPETS as FILES
from tests.hostile.interpreter import SNIPPETS as INTERPRETER
from tests.hostile.network import SNIPPETS as NETWORK
from tests.hostile.processes import SNIPPETS as PROCESSES
from tests.hostile.resources import SNIPPETS as RESOURCES

# Before every snippet: ``tried`` says whether one of several things to do went through.
PRELUDE = """
import ctypes, errno, os, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def tried(*deeds):
    won = False
    for deed in deeds:
        try:
            outcome = deed()
        except Exception:
            continue
        won = won or outcome is not False
    return won
def ok(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), 'refused')
    return result
parent = os.getppid()
"""
SNIPPETS = {
    name: PRELUDE + source
    for group in (FILES, INTERPRETER, NETWORK, PROCESSES, RESOURCES)
    for name, source in group.items()
}
