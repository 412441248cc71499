"""What a server is started with."""

import ipaddress
import socket
from dataclasses import dataclass, field
from typing import Literal

from adhere.errors import ConfigError

Reward = Literal["isr", "csr"]
LOOPBACK = "127.0.0.1"
_SHORTEST_TOKEN = 16
_LAST_PORT = 65535
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a server takes.

    body_bytes      of one request; more is refused while it is read
    held_bytes      of all bodies that are held at once
    running         items that are judged at once; the others wait
    waiting         requests that wait for that; one more is refused with 429
    deadline_s      longest time for one item, waiting included
    body_s          longest time for a body to arrive
    constraints     of one item
    filled_bytes    of one item's prompts and checks, the response filled in
    items           of one batch
    """

    body_bytes: int = 16 * _MIB
    held_bytes: int = 512 * _MIB
    running: int = 256
    waiting: int = 1024
    deadline_s: float = 600.0
    body_s: float = 30.0
    constraints: int = 1000
    filled_bytes: int = 64 * _MIB
    items: int = 10_000


@dataclass(frozen=True, slots=True)
class Settings:
    """Where a server listens, whom it answers, and how it rewards.

    token: what a request must bear; None on a loopback address only.
    policy: how verdicts are counted for NeMo Gym (adhere.scoring.policies).
    mask: whether an item whose judge failed is masked, where the request does not say.
    """

    host: str = LOOPBACK
    port: int = 0
    token: str | None = field(default=None, repr=False)
    reward: Reward = "isr"
    policy: str = "nemo-0.7"
    mask: bool = False
    limits: Limits = Limits()


def listen(settings: Settings) -> socket.socket:
    """Return a listening socket.

    Raises ConfigError where the address cannot be had, or is open to others without a token.
    """
    if not 0 <= settings.port <= _LAST_PORT:
        raise ConfigError(f"--port: found {settings.port}: must be from 0 (any) to {_LAST_PORT}")
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ConfigError(f"--host {settings.host}: no such address: {error}") from None
    family, _, _, _, address = found[0]
    if not ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback:
        _require_token(settings)
    if settings.token is not None and len(settings.token) < _SHORTEST_TOKEN:
        raise ConfigError(
            f"--token-env: the token has fewer than {_SHORTEST_TOKEN} characters: take a long "
            "random one, such as that of `openssl rand -hex 32`"
        )
    try:
        return socket.create_server((str(address[0]), settings.port), family=family, backlog=2048)
    except OSError as error:
        raise ConfigError(
            f"--host {settings.host} --port {settings.port}: cannot listen there: "
            f"{error.strerror}: take another port, or end what uses it"
        ) from None


def _require_token(settings: Settings) -> None:
    if settings.token is None:
        raise ConfigError(
            f"--host {settings.host}: others can reach this address, and whoever can may spend "
            "the judge's money: name the variable that holds a bearer token with --token-env, or "
            f"listen on {LOOPBACK}"
        )
