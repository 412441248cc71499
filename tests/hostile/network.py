"""Checkers that want to reach somebody."""

SNIPPETS = {
    "tcp4": """
def check_following(response):
    return tried(lambda: socket.create_connection(('127.0.0.1', PORT), timeout=1).send(b'x'))
""",
    "tcp6": """
def check_following(response):
    return tried(lambda: socket.socket(socket.AF_INET6).connect(('::ffff:127.0.0.1', PORT)))
""",
    "udp": """
def check_following(response):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    return s.sendto(b'leak', ('127.0.0.1', PORT)) == 4
""",
    "unix_path": """
def check_following(response):
    return tried(lambda: socket.socket(socket.AF_UNIX).connect('EVIDENCE/LISTENER'))
""",
    "unix_abstract": """
def check_following(response):
    return tried(lambda: socket.socket(socket.AF_UNIX).connect('\\0LISTENER'))
""",
    "pair_turned_elsewhere": """
def check_following(response):
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    return tried(
        lambda: a.connect('\\0LISTENER'),
        lambda: a.sendto(b'x', '\\0LISTENER'),
        lambda: a.connect('EVIDENCE/LISTENER'),
        lambda: a.sendmsg([b'x'], [], 0, '\\0LISTENER'),
        lambda: a.bind('EVIDENCE/mine'),
        lambda: a.bind('\\0mine'),
        lambda: a.listen(),
        lambda: a.send(b'x'),
    )
""",
    "pair_of_other_families": """
def check_following(response):
    return tried(*(lambda f=f: socket.socketpair(f, socket.SOCK_STREAM) for f in (2, 10, 30, 40)))
""",
    "every_family": """
def check_following(response):
    return tried(
        *(lambda f=f, t=t: socket.socket(f, t, 0) for f in range(50) for t in (1, 2, 3, 5))
    )
""",
    "netlink": """
def check_following(response):
    return tried(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).bind((0, 0)))
""",
    "vsock": """
def check_following(response):
    return tried(lambda: socket.socket(socket.AF_VSOCK).connect((2, 1)))
""",
    "raw_and_packet": """
def check_following(response):
    return tried(
        lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
        lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3),
    )
""",
    "crypto_family": """
def check_following(response):
    return tried(lambda: socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET))
""",
    "server": """
def check_following(response):
    return tried(lambda: socket.create_server(('127.0.0.1', 0)))
""",
    "name_lookup": """
def check_following(response):
    return tried(lambda: socket.getaddrinfo('localhost.localdomain.example', 80))
""",
    "urllib_and_asyncio": """
import asyncio, urllib.request
def check_following(response):
    return tried(
        lambda: urllib.request.urlopen('http://127.0.0.1:PORT/', timeout=1),
        lambda: asyncio.run(asyncio.open_connection('127.0.0.1', PORT)),
    )
""",
    "raw_socket_call": """
def check_following(response):
    number = {'x86_64': 41, 'aarch64': 198}[os.uname().machine]
    return tried(lambda: ok(libc.syscall(number, 2, 1, 0)), lambda: ok(libc.socket(2, 1, 0)))
""",
    "other_call_tables": """
import mmap
def check_following(response):
    # A socket by the numbers of x32, then by those of 32-bit code, which ends the process.
    if os.uname().machine != 'x86_64':
        return False
    if libc.syscall(0x40000000 + 41, 2, 1, 0) >= 0:
        return True
    page = mmap.mmap(-1, 4096, prot=7)
    page.write(bytes.fromhex('53b867010000bb02000000b901000000ba00000000cd805bc3'))
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)() >= 0
""",
    "descriptor_over_the_channel": """
import array
def check_following(response):
    rights = array.array('i', [0])

    def send(fd):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=os.dup(fd))
        return s.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]) > 0

    return tried(*(lambda fd=fd: send(fd) for fd in range(64)))
""",
}
