"""Checkers that want to read, write or change files."""

SNIPPETS = {
    "secret": """
def check_following(response):
    return 'sk-' in open('EVIDENCE/secret.txt').read()
""",
    "secret_by_other_doors": """
import io, linecache, mmap, pathlib
def check_following(response):
    path = 'EVIDENCE/secret.txt'
    folder = os.open('EVIDENCE', os.O_PATH)
    handle = os.open(path, os.O_PATH)
    return tried(
        lambda: os.open(path, 0),
        lambda: os.open('secret.txt', 0, dir_fd=folder),
        lambda: io.FileIO(path).read(),
        lambda: pathlib.Path(path).read_text(),
        lambda: bool(linecache.getlines(path)),
        lambda: os.read(handle, 9),
        lambda: os.open(f'/proc/self/fd/{handle}', 0),
        lambda: mmap.mmap(handle, 0, prot=1),
        lambda: os.open('EVIDENCE/../' + os.path.basename('EVIDENCE') + '/secret.txt', 0),
        lambda: ok(libc.open(path.encode(), 0)),
        lambda: ok(libc.syscall(437, folder, b'secret.txt', struct.pack('3Q', 0, 0, 0), 24)),
    )
""",
    "secret_by_handle": """
def check_following(response):
    buffer = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128))
    mount = ctypes.c_int()
    return tried(
        lambda: ok(
            libc.name_to_handle_at(-100, b'EVIDENCE/secret.txt', buffer, ctypes.byref(mount), 0)
        ),
        lambda: ok(libc.open_by_handle_at(-100, buffer, 0)),
    )
""",
    "secret_by_import": """
import importlib.util, runpy
def check_following(response):
    sys.path.insert(0, 'EVIDENCE')
    return tried(
        lambda: __import__('module'),
        lambda: runpy.run_path('EVIDENCE/module.py'),
        lambda: os.listdir('EVIDENCE'),
        lambda: list(os.scandir('/tmp')),
    )
""",
    "system_files": """
def check_following(response):
    return tried(
        *(
            lambda p=p: open(p, 'rb').read(1)
            for p in (
                '/etc/passwd',
                '/etc/shadow',
                '/etc/hosts',
                '/etc/hostname',
                '/etc/profile',
                '/sys/kernel/mm',
                '/etc/resolv.conf',
                '/var/log/lastlog',
                '/dev/mem',
                '/dev/kmsg',
                '/dev/sda',
                '/dev/tty',
                '/dev/pts/0',
                '/dev/shm',
                '/run',
                '/tmp',
                '/',
            )
        ),
        lambda: os.listdir('/'),
        lambda: os.listdir('/etc'),
        lambda: os.listdir(os.path.expanduser('~')),
    )
""",
    "proc": """
def check_following(response):
    return tried(
        *(
            lambda p=p, n=n: os.open(f'/proc/{p}/{n}', 0)
            for p in ('self', parent, 1, 'thread-self')
            for n in (
                'environ',
                'mem',
                'maps',
                'fd',
                'cmdline',
                'status',
                'stat',
                'task',
                'cwd',
                'root',
            )
        ),
        lambda: os.listdir('/proc'),
        lambda: os.open('/proc/sys/kernel/hostname', 0),
        lambda: os.open('/proc/mounts', 0),
    )
""",
    "links_in_proc": """
def check_following(response):
    return tried(
        lambda: os.readlink(f'/proc/{parent}/exe'),
        lambda: os.readlink(f'/proc/{parent}/cwd'),
        lambda: os.readlink(f'/proc/{parent}/fd/0'),
        lambda: os.readlink('/proc/1/root'),
    )
""",
    "environment_key": """
import gc
def check_following(response):
    seen = any('sk-' in value for value in os.environ.values())
    held = any(
        type(o) is str and o.startswith('sk-canary')
        for d in gc.get_objects()
        if type(d) is dict
        for o in d.values()
    )
    return seen or held or os.getenv('OPENAI_API_KEY') is not None
""",
    "write_anywhere": """
def check_following(response):
    return tried(
        *(
            lambda d=d: open(d + '/hostile-write', 'w')
            for d in (
                'EVIDENCE',
                '/tmp',
                '/var/tmp',
                '/dev/shm',
                '/run',
                '.',
                '/root',
                '/etc',
                '/usr/lib',
                os.path.dirname(os.__file__),
            )
        )
    )
""",
    "write_by_other_doors": """
import dbm, logging, shelve, shutil, sqlite3, tempfile, zipfile
def check_following(response):
    base = 'EVIDENCE/'
    return tried(
        lambda: os.open(base + 'a', os.O_CREAT | os.O_RDONLY),
        lambda: os.mkdir(base + 'b'),
        lambda: os.mkfifo(base + 'c'),
        lambda: os.mknod(base + 'd'),
        lambda: os.symlink('x', base + 'e'),
        lambda: os.link(base + 'secret.txt', base + 'f'),
        lambda: os.open('EVIDENCE', os.O_TMPFILE | os.O_RDWR),
        lambda: tempfile.NamedTemporaryFile(),
        lambda: tempfile.mkdtemp(dir='EVIDENCE'),
        lambda: sqlite3.connect(base + 'g').execute('create table t (a)') and None,
        lambda: shelve.open(base + 'h'),
        lambda: zipfile.ZipFile(base + 'i', 'w'),
        lambda: logging.FileHandler(base + 'j'),
        lambda: shutil.copy(os.__file__, base + 'k'),
        lambda: ok(libc.creat(base.encode() + b'l', 0o600)),
    )
""",
    "change_a_file": """
def check_following(response):
    path = 'EVIDENCE/secret.txt'
    return tried(
        lambda: open(path, 'a'),
        lambda: open(path, 'r+'),
        lambda: os.truncate(path, 0),
        lambda: os.remove(path),
        lambda: os.rename(path, path + '2'),
        lambda: os.replace(path, 'EVIDENCE/r'),
        lambda: os.open(path, os.O_RDONLY | os.O_TRUNC),
    )
""",
    "change_what_a_file_is": """
def check_following(response):
    path = 'EVIDENCE/secret.txt'
    handle = os.open(path, os.O_PATH)
    return tried(
        lambda: os.chmod(path, 0o777),
        lambda: os.chmod('EVIDENCE', 0o777),
        lambda: os.lchown(path, 0, 0),
        lambda: os.chown(path, os.getuid(), os.getgid()),
        lambda: os.utime(path),
        lambda: os.utime(path, (1, 1)),
        lambda: os.setxattr(path, 'user.x', b'x'),
        lambda: os.removexattr(path, 'user.x'),
        lambda: ok(libc.syscall(452, -100, path.encode(), 0o777, 0)),
        lambda: os.fchmod(handle, 0o777),
    )
""",
    "change_libraries": """
def check_following(response):
    handle = os.open(os.__file__, os.O_RDONLY)
    import fcntl

    return tried(
        lambda: os.fchmod(handle, 0o644),
        lambda: os.fchown(handle, 0, 0),
        lambda: os.utime(handle, (1, 1)),
        lambda: os.ftruncate(handle, 0),
        lambda: os.posix_fallocate(handle, 0, 1),
        lambda: os.write(handle, b'x'),
        lambda: fcntl.flock(handle, fcntl.LOCK_EX),
        lambda: fcntl.lockf(handle, fcntl.LOCK_SH),
        lambda: os.setxattr(handle, 'user.x', b'x'),
        lambda: os.remove(os.__file__),
        lambda: open(os.__file__, 'r+'),
        lambda: open(os.__file__, 'ab'),
        lambda: open('/dev/full', 'w'),
    )
""",
    "shared_memory_files": """
import _posixshmem, multiprocessing.shared_memory
def check_following(response):
    return tried(
        lambda: _posixshmem.shm_open('/hostile', os.O_CREAT | os.O_RDWR, 0o600),
        lambda: multiprocessing.shared_memory.SharedMemory('hostile', True, 64),
        lambda: ok(libc.sem_open(b'/hostile', os.O_CREAT, 0o600, 1) or -1),
    )
""",
    "watch_files": """
def check_following(response):
    return tried(lambda: ok(libc.inotify_init1(0)), lambda: ok(libc.fanotify_init(0, 0)))
""",
    "write_to_what_is_open": """
def check_following(response):
    # Everything inherited is /dev/null or the channel; nothing may arrive anywhere else.
    for fd in range(3):
        tried(lambda: os.write(fd, b'x'), lambda: os.ftruncate(fd, 0), lambda: os.lseek(fd, 0, 0))
    links = [os.fstat(fd).st_rdev for fd in range(3)]
    return links != [os.makedev(1, 3)] * 3
""",
    "folders": """
def check_following(response):
    os.umask(0)
    os.chdir('EVIDENCE')
    return tried(lambda: open('relative', 'w'), lambda: open('secret.txt'), lambda: os.listdir('.'))
""",
    "locale_files": """
import locale
def check_following(response):
    os.environ['LOCPATH'] = 'EVIDENCE'
    os.environ['TZ'] = 'EVIDENCE/secret.txt'
    time.tzset()
    return tried(lambda: locale.setlocale(locale.LC_ALL, 'xx_XX.UTF-8'))
""",
    "library_from_there": """
def check_following(response):
    return tried(lambda: ctypes.CDLL('EVIDENCE/secret.txt'), lambda: ctypes.CDLL('EVIDENCE/lib.so'))
""",
}
