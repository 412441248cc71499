"""Checkers that want further processes, or somebody else's."""

SNIPPETS = {
    "fork_bomb": """
def check_following(response):
    won = False
    for _ in range(200):
        try:
            if os.fork() == 0:
                time.sleep(30)
                os._exit(0)
            won = True
        except OSError:
            pass
    return won
""",
    "fork_by_other_doors": """
import pty
def check_following(response):
    return tried(
        os.forkpty,
        pty.fork,
        lambda: ok(libc.fork()),
        lambda: os.posix_spawn('/bin/true', ['true'], {}),
        lambda: ok(
            libc.syscall({'x86_64': 56, 'aarch64': 220}[os.uname().machine], 17, 0, 0, 0, 0)
        ),
        lambda: ok(libc.syscall(435, struct.pack('11Q', 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88)),
    )
""",
    "vfork": """
def check_following(response):
    number = {'x86_64': 58}.get(os.uname().machine)
    if number is None:
        return False
    pid = libc.syscall(number)
    if pid == 0:
        os._exit(0)
    return pid > 0
""",
    "daemon_writes_later": """
def check_following(response):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(0.2)
            open('EVIDENCE/daemon', 'w').write('x')
        os._exit(0)
    return True
""",
    "thread_writes_later": """
import threading
def later():
    time.sleep(0.2)
    open('EVIDENCE/thread', 'w').write('x')
def check_following(response):
    return tried(lambda: threading.Thread(target=later).start())
""",
    "pools": """
import concurrent.futures, multiprocessing
def check_following(response):
    return tried(
        lambda: concurrent.futures.ThreadPoolExecutor(1).submit(int).result(1),
        lambda: multiprocessing.get_context('fork').Process(target=int).start(),
        lambda: multiprocessing.get_context('spawn').Process(target=int).start(),
    )
""",
    "shell": """
import subprocess
def check_following(response):
    return tried(
        lambda: subprocess.run(['/bin/sh', '-c', 'echo x > EVIDENCE/shell'], check=True),
        lambda: os.popen('id').read() != '',
        lambda: os.system('echo x > EVIDENCE/system') == 0,
    )
""",
    "exec_a_shell": """
def check_following(response):
    os.execve('/bin/sh', ['sh', '-c', 'echo x > EVIDENCE/exec'], {})
""",
    "exec_by_descriptor": """
def check_following(response):
    fd = os.open('/usr/lib/os-release', os.O_RDONLY)
    return tried(lambda: os.execve(fd, ['x'], {}), lambda: ok(libc.fexecve(fd, None, None)))
""",
    "program_from_memory": """
def check_following(response):
    def run():
        fd = os.memfd_create('x')
        os.write(fd, open('/bin/true', 'rb').read())
        os.execve(fd, ['x'], {})

    return tried(run, lambda: os.memfd_create('x'))
""",
    "loader_as_program": """
def check_following(response):
    os.execv('/lib64/ld-linux-x86-64.so.2', ['ld', '/bin/sh', '-c', 'echo x > EVIDENCE/ld'])
""",
    "signal_the_server": """
import signal
def check_following(response):
    return tried(*(lambda s=s: os.kill(parent, s) for s in (0, 9, 15, 19, 18, 1)))
""",
    "signal_everybody": """
def check_following(response):
    return tried(
        lambda: os.kill(-1, 9),
        lambda: os.kill(0, 0),
        lambda: os.killpg(os.getpgid(parent), 9),
        lambda: os.kill(-os.getpgid(parent), 0),
        lambda: os.kill(1, 0),
        lambda: os.kill(-os.getpid(), 0),
    )
""",
    "signal_threads_of_the_server": """
def check_following(response):
    tgkill, tkill, queue = {'x86_64': (234, 200, 129), 'aarch64': (131, 130, 138)}[
        os.uname().machine
    ]
    info = ctypes.create_string_buffer(128)
    return tried(
        lambda: ok(libc.syscall(tgkill, parent, parent, 0)),
        lambda: ok(libc.syscall(tkill, parent, 0)),
        lambda: ok(libc.syscall(queue, parent, 0, info)),
        lambda: ok(libc.tgkill(parent, parent, 9)),
        lambda: ok(libc.syscall(tgkill, -1, parent, 0)),
    )
""",
    "pidfd": """
import signal
def check_following(response):
    return tried(
        lambda: os.pidfd_open(parent),
        lambda: os.pidfd_open(os.getpid()),
        lambda: signal.pidfd_send_signal(0, 0),
        lambda: ok(libc.syscall(438, 0, 0, 0)),
    )
""",
    "signal_by_alarm_and_owner": """
import fcntl
def check_following(response):
    reader, writer = os.pipe()
    return tried(
        lambda: fcntl.fcntl(reader, fcntl.F_SETOWN, parent),
        lambda: fcntl.fcntl(reader, 15, struct.pack('ii', 1, parent)),
        lambda: fcntl.fcntl(reader, fcntl.F_SETSIG, 9),
        lambda: fcntl.fcntl(reader, fcntl.F_SETLEASE, fcntl.F_RDLCK),
        lambda: fcntl.fcntl(os.open('/usr/lib', 0), fcntl.F_NOTIFY, 1),
    )
""",
    "ptrace": """
def check_following(response):
    return tried(
        lambda: ok(libc.ptrace(16, parent, 0, 0)),
        lambda: ok(libc.ptrace(0x4206, parent, 0, 0)),
        lambda: ok(libc.ptrace(0, 0, 0, 0)),
    )
""",
    "memory_of_the_server": """
def check_following(response):
    address = ctypes.cast(libc.getpid, ctypes.c_void_p).value
    buffer = ctypes.create_string_buffer(8)
    local, remote = (
        (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 8),
        (ctypes.c_void_p * 2)(address, 8),
    )
    one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
    return tried(
        lambda: ok(libc.process_vm_readv(parent, local, one, remote, one, none)),
        lambda: ok(libc.process_vm_writev(parent, local, one, remote, one, none)),
        lambda: open(f'/proc/{parent}/mem', 'rb', 0),
        lambda: open(f'/proc/{parent}/mem', 'r+b', 0),
    )
""",
    "limits_and_priority_of_others": """
import resource
def check_following(response):
    return tried(
        lambda: resource.prlimit(parent, resource.RLIMIT_NOFILE),
        lambda: resource.prlimit(parent, resource.RLIMIT_NOFILE, (0, 0)),
        lambda: resource.prlimit(0, resource.RLIMIT_CPU, (1, 1)),
        lambda: os.setpriority(os.PRIO_PROCESS, parent, 19),
        lambda: os.nice(1),
        lambda: os.sched_setaffinity(parent, {0}),
        lambda: os.sched_setaffinity(0, {0}),
        lambda: os.sched_setscheduler(parent, os.SCHED_IDLE, os.sched_param(0)),
    )
""",
    "group_and_session": """
def check_following(response):
    return tried(
        os.setsid,
        lambda: os.setpgid(0, os.getpgid(parent)),
        lambda: os.setpgid(0, 0),
        lambda: ok(libc.prctl(1, 0, 0, 0, 0)),
        lambda: ok(libc.prctl(36, 1, 0, 0, 0)),
        lambda: ok(libc.prctl(4, 1, 0, 0, 0)),
        lambda: ok(libc.prctl(22, 2, 0, 0, 0)),
    )
""",
    "another_user": """
def check_following(response):
    return tried(
        lambda: os.setuid(os.getuid()),
        lambda: os.setresuid(0, 0, 0),
        lambda: os.setgroups([0]),
        lambda: os.setgid(0),
        lambda: os.seteuid(65534),
        lambda: ok(libc.capset(None, None)),
    )
""",
    "namespaces": """
def check_following(response):
    return tried(
        *(
            lambda f=f: ok(libc.unshare(f))
            for f in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x400)
        ),
        lambda: ok(libc.setns(0, 0)),
        lambda: os.chroot('EVIDENCE'),
        lambda: ok(libc.mount(b'x', b'EVIDENCE', b'tmpfs', 0, None)),
        lambda: ok(libc.umount(b'/proc')),
    )
""",
}
