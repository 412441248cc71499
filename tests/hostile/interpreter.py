"""Checkers that turn their interpreter, or what they return, against whoever reads the result."""

_VALUES = {
    "text_subclass": "class T(str):\n    def encode(self, *a): return b'x'\nvalue = T('YES')",
    "false_friend": (
        "class T:\n    def __bool__(self): return True\n    def __eq__(self, o): return True\n"
        "    def __hash__(self): return hash(True)\n    def __repr__(self): return 'True'\n"
        "value = T()"
    ),
    "liar_about_its_class": (
        "class T:\n    @property\n    def __class__(self): return bool\nvalue = T()"
    ),
    "pickle_with_a_sting": (
        "class T:\n    def __reduce__(self): return (exec, (\"open('EVIDENCE/pickle','w')\",))\n"
        "value = T()"
    ),
    "hostile_metaclass": (
        "class M(type):\n    def __getattribute__(c, n): raise SystemExit(0)\n"
        "    def __instancecheck__(c, o): return True\nclass T(metaclass=M): pass\nvalue = T()"
    ),
    "finalizer": ("class T:\n    def __del__(self): open('EVIDENCE/del', 'w')\nvalue = T()"),
    "number_that_is_one": "value = 1",
    "generator": "def g():\n    while True: yield 1\nvalue = g()",
    "recursive_list": "value = []\nvalue.append(value)",
    "deep_tuple": "value = ()\nfor _ in range(200_000): value = (value,)",
}
SNIPPETS = {
    f"returns_{name}": f"{source}\ndef check_following(response): return value\n"
    for name, source in _VALUES.items()
} | {
    "at_exit": """
import atexit, weakref
class T: pass
kept = T()
weakref.finalize(kept, lambda: open('EVIDENCE/finalize', 'w'))
atexit.register(lambda: open('EVIDENCE/atexit', 'w'))
def check_following(response): return False
""",
    "error_with_a_sting": """
class E(BaseException):
    def __str__(self): open('EVIDENCE/str', 'w'); raise self
    __repr__ = __str__
    @property
    def __traceback__(self): os._exit(0)
def check_following(response): raise E
""",
    "error_group": """
def check_following(response):
    raise BaseExceptionGroup('x', [BaseExceptionGroup('y', [KeyboardInterrupt()]), SystemExit(0)])
""",
    "modules_replaced": """
import builtins, json, re, types
def check_following(response):
    fake = types.ModuleType('json')
    fake.loads = lambda *a: True
    sys.modules.update(json=fake, re=fake, os=fake)
    builtins.len = lambda x: 7
    builtins.__import__ = lambda *a, **k: fake
    re.search = lambda *a: True
    return False
""",
    "import_hooks": """
import importlib.abc
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, *a): open('EVIDENCE/hook', 'w')
def check_following(response):
    sys.meta_path.insert(0, Finder())
    sys.path_hooks.insert(0, lambda p: open('EVIDENCE/path_hook', 'w'))
    sys.path_importer_cache.clear()
    return False
""",
    "traced_sender": """
def check_following(response):
    def trace(frame, event, argument):
        for name in list(frame.f_locals):
            frame.f_locals[name] = b'forged'
        return trace
    sys.settrace(trace)
    sys.setprofile(trace)
    return False
""",
    "caller_rewritten": """
def check_following(response):
    frame = sys._getframe(1)
    while frame:
        for name in ('_convert', '_send', 'write', 'read', '_exit', 'REPLY'):
            frame.f_globals[name] = lambda *a: True
        frame.f_locals.clear()
        frame = frame.f_back
    return False
""",
    "constants_rewritten": """
def check_following(response):
    # True where False is kept: this process only.
    size = sys.getsizeof(False)
    ctypes.memmove(id(False) + 16, id(True) + 16, size - 16)
    return False
""",
    "collector_turned": """
import gc
def check_following(response):
    gc.callbacks.append(lambda *a: open('EVIDENCE/gc', 'w'))
    for thing in gc.get_objects():
        if type(thing) is dict and 'loads' in thing:
            thing.clear()
    gc.collect()
    return False
""",
    "hooks_left": """
import faulthandler, signal, threading
def check_following(response):
    sys.excepthook = sys.unraisablehook = lambda *a: open('EVIDENCE/excepthook', 'w')
    threading.excepthook = sys.excepthook
    signal.signal(signal.SIGALRM, lambda *a: open('EVIDENCE/alarm', 'w'))
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    tried(lambda: faulthandler.dump_traceback_later(0.01, exit=True))
    os.register_at_fork(before=lambda: open('EVIDENCE/at_fork', 'w'))
    sys.addaudithook(lambda *a: None)
    return False
""",
    "forged_frames": """
def check_following(response):
    for fd in range(64):
        for frame in (bytes(16) + b'\\x14' + bytes(8), b'\\x14' + bytes(8), b'\\xff' * 64):
            tried(lambda: os.write(fd, frame))
    return False
""",
    "forged_true_with_the_mark": """
def check_following(response):
    # Its own verdict is its own to give, but nobody else's may change and the server must live.
    for fd in range(3, 64):
        def forge():
            mark = os.read(fd, 16)
            os.write(fd, mark + b'\\x14' + bytes(8) + b'\\x14' + bytes(8) * 3)
        tried(forge)
    os._exit(0)
""",
    "recursion_in_c": """
import json, pickle, ast, copy
def check_following(response):
    sys.setrecursionlimit(10**8)
    deep = []
    for _ in range(10**6): deep = [deep]
    for f in (json.dumps, pickle.dumps, copy.deepcopy, repr):
        try: f(deep)
        except Exception: pass
    return False
""",
    "parser_depth": """
import ast
def check_following(response):
    for text in ('(' * 10**5, '-' * 10**6 + '1', '[' * 10**5 + ']' * 10**5, 'a.' * 10**5 + 'a'):
        try: compile(text, 'x', 'eval')
        except (SyntaxError, MemoryError, RecursionError): pass
    sys.setrecursionlimit(10**7)
    return ast.literal_eval('[' * 90 + ']' * 90) is None
""",
    "broken_pointer": """
def check_following(response):
    ctypes.memset(id(type), 0, 400)
    return False
""",
    "code_object": """
def check_following(response):
    code = check_following.__code__.replace(co_code=bytes([255, 255] * 200), co_stacksize=1)
    exec(code)
    return False
""",
    "own_class_changed": """
def check_following(response):
    pythonapi = ctypes.pythonapi
    for kind in (bool, str, int, dict, type(None)):
        holder = ctypes.py_object.from_address(id(kind.__dict__) + 16).value
        holder['__eq__'] = holder['encode'] = holder['__len__'] = lambda *a: True
        pythonapi.PyType_Modified(ctypes.py_object(kind))
    return False
""",
    "exits": """
def check_following(response):
    libc.exit(0)
""",
    "source_that_acts": """
open('EVIDENCE/at_import', 'w')
def check_following(response): return False
""",
}
