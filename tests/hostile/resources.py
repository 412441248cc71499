"""Checkers that want too much of something, or that the kernel does them a favour."""

SNIPPETS = {
    "memory_bomb": """
def check_following(response):
    held = []
    try:
        while True:
            held.append(bytearray(64 << 20))
    except MemoryError:
        return len(held) * 64 > 2048
""",
    "memory_past_the_limit": """
import mmap
def check_following(response):
    # What is not address space is not counted by its limit: none of it may be had.
    import fcntl

    pipes = [os.pipe() for _ in range(20)]
    return tried(
        *(lambda w=w: fcntl.fcntl(w, fcntl.F_SETPIPE_SZ, 1 << 20) for _, w in pipes),
        lambda: os.memfd_create('x'),
        lambda: ok(libc.syscall(447, 0)),
        lambda: ok(libc.mlockall(1)),
        lambda: mmap.mmap(-1, 8 << 30),
    )
""",
    "raise_limits": """
import resource
def check_following(response):
    names = [name for name in dir(resource) if name.startswith('RLIMIT_')]
    infinite = (resource.RLIM_INFINITY,) * 2
    return tried(*(lambda n=n: resource.setrlimit(getattr(resource, n), infinite) for n in names))
""",
    "descriptors": """
def check_following(response):
    held = []
    try:
        while len(held) < 5000:
            held.append(os.open('/dev/null', 0))
    except OSError:
        pass
    return len(held) > 100
""",
    "disk": """
import fcntl
def check_following(response):
    return tried(
        lambda: os.write(os.open('EVIDENCE/secret.txt', os.O_WRONLY), b'x' * (1 << 20)),
        lambda: os.posix_fallocate(1, 0, 1 << 20),
    )
""",
    "regex": """
import re
def check_following(response):
    return bool(re.match(r'(x+x+)+y', 'x' * 60))
""",
    "compute_in_c": """
def check_following(response):
    return sum(range(1 << 45)) > 0
""",
    "ignore_everything_and_sleep": """
import signal
def check_following(response):
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    while True:
        time.sleep(3600)
""",
    "stop_itself": """
import signal
def check_following(response):
    os.kill(os.getpid(), signal.SIGSTOP)
    return True
""",
    "processor_time_alarm_ignored": """
import signal
def check_following(response):
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)
    while True:
        pass
""",
    "giant_return": """
def check_following(response):
    return 'x' * (300 << 20)
""",
    "giant_error": """
def check_following(response):
    raise ValueError('x' * (200 << 20))
""",
    "giant_print": """
def check_following(response):
    for _ in range(200):
        print('y' * (1 << 20), flush=True)
        sys.stderr.write('z' * 1000)
    return False
""",
    "shared_memory_that_stays": """
def check_following(response):
    return tried(
        lambda: ok(libc.shmget(0x5EC, ctypes.c_size_t(4096), 0o1666)),
        lambda: ok(libc.semget(0x5EC, 1, 0o1666)),
        lambda: ok(libc.msgget(0x5EC, 0o1666)),
        lambda: ok(libc.mq_open(b'/hostile', os.O_CREAT, 0o666, None)),
    )
""",
    "timers_and_events": """
def check_following(response):
    timer = ctypes.c_void_p()
    return tried(
        lambda: ok(libc.timer_create(1, None, ctypes.byref(timer))),
        lambda: ok(libc.timerfd_create(1, 0)),
        lambda: ok(libc.signalfd(-1, bytes(128), 0)),
    )
""",
    "terminal": """
import fcntl, termios
def check_following(response):
    return tried(
        *(
            lambda fd=fd, request=request: fcntl.ioctl(fd, request, b'x' + bytes(63))
            for fd in range(8)
            for request in (0x5412, 0x540E, 0x5401 + 1, 0x541C, 0x5423)
        ),
        lambda: os.openpty(),
        lambda: os.open('/dev/ptmx', os.O_RDWR),
    )
""",
    "asynchronous_rings": """
def check_following(response):
    setup = {'x86_64': 206, 'aarch64': 0}[os.uname().machine]
    context = ctypes.c_ulong()
    return tried(
        lambda: ok(libc.syscall(425, 4, bytes(120))),
        lambda: ok(libc.syscall(setup, 4, ctypes.byref(context))),
    )
""",
    "kernel_favours": """
def check_following(response):
    # bpf, perf_event_open, userfaultfd, add_key, keyctl, kexec_load, init_module, reboot (no magic)
    numbers = {
        'x86_64': (321, 298, 323, 248, 250, 246, 175, 169),
        'aarch64': (280, 241, 282, 217, 219, 104, 105, 142),
    }[os.uname().machine]
    return any(
        libc.syscall(n, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() not in (1, 38) for n in numbers
    )
""",
    "clock_and_names": """
def check_following(response):
    return tried(
        lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()),
        lambda: socket.sethostname('x'),
        lambda: ok(libc.settimeofday(None, bytes(8))),
        lambda: ok(libc.personality(0x40000)),
    )
""",
    "exhausted_descriptors_then_import": """
def check_following(response):
    held = [os.dup(0) for _ in range(40)]
    while True:
        try:
            held.append(os.dup(0))
        except OSError:
            break
    import fractions, wave

    return False
""",
}
