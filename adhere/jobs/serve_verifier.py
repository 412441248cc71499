"""Serve the verifier: the judge stage's engine over HTTP, until a signal ends it."""

import argparse
import socket
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from adhere import loop
from adhere.checkers import CheckerPool
from adhere.client import ChatClient
from adhere.config import Project, load_project
from adhere.config.problems import nearest
from adhere.costs.budget import judge_allowance
from adhere.environment import lookup
from adhere.errors import ConfigError
from adhere.jobs.judge import Judging, with_judge
from adhere.judging import Judge
from adhere.scoring import POLICIES
from adhere.service.engine import Engine
from adhere.service.gate import Gate
from adhere.service.logs import log_lines
from adhere.service.server import Server
from adhere.service.settings import LOOPBACK, Limits, Reward, Settings, listen

_MIB = 2**20


def main() -> None:
    """Serve by hand."""
    args = _arguments()
    project = load_project(Path())
    judge = _judge(project, args.judge or project.config.default_judge)
    settings = _settings(args, project)
    with listen(settings) as listener, log_lines():
        _serve(project, judge, settings, listener)


def _serve(project: Project, judge: Judge, settings: Settings, listener: socket.socket) -> None:
    async def work(client: ChatClient | None) -> None:
        async with CheckerPool.configured(project.config.checkers) as pool:
            engine = Engine(judge, client, pool, Gate(settings.limits))
            await Server(engine, settings).serve_on(listener)

    if judge.asks_nobody:
        loop.run(work(None))
        return
    log = Path("logs") / "serve_verifier.server.log"
    local = judge.config.local is not None
    allowance = None if local else judge_allowance(project, judge.name)
    with_judge(Judging(project, judge, (), log, "serve", log, allowance), {}, work)


def _judge(project: Project, name: str) -> Judge:
    if name not in project.judges:
        known = list(project.judges)
        raise ConfigError(
            f"--judge {name}: there is no judge_configs/{name}.yaml{nearest(name, known)} (there "
            f"are: {', '.join(known) or 'none'})"
        )
    # Whoever asks this service waits for the verdict: no batches.
    return Judge(name, project.judges[name].model_copy(update={"batch": False}))


def _settings(args: argparse.Namespace, project: Project) -> Settings:
    limits = Limits(
        body_bytes=args.max_body_mb * _MIB,
        held_bytes=args.max_held_mb * _MIB,
        running=args.concurrency,
        waiting=args.queue,
        deadline_s=args.deadline_s,
    )
    return Settings(
        host=args.host,
        port=args.port,
        token=_token(args.token_env, project.root),
        reward=args.reward,
        policy=args.policy,
        mask=args.mask_judge_failures,
        limits=limits,
    )


def _token(name: str | None, root: Path) -> str | None:
    if name is None:
        return None
    token = lookup(name, root)
    if token is None or not token.isascii() or not token.isprintable() or " " in token:
        found = "not set" if token is None else "holding what no header can"
        raise ConfigError(
            f"--token-env {name}: the variable is {found}: export {name}, or put it in .env; "
            "`openssl rand -hex 32` makes a token"
        )
    return token


def _arguments() -> argparse.Namespace:
    usual = Limits()
    parser = argparse.ArgumentParser(
        prog="serve_verifier.py",
        description="Answer over HTTP whether a response follows its constraints: NeMo Gym's "
        "contract, and /v1/verify for anyone (docs/service.md). Verdicts are those of the judge "
        "stage. SIGTERM ends it once all that was accepted is answered, a second one at once.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--judge", help="a judge of judge_configs/ (default_judge of configs/global.yaml)")
    add("--host", default=LOOPBACK, help="address to listen on; another than this needs a token")
    add("--port", type=_at_least(0), default=8400, help="0: any that is free")
    add("--token-env", metavar="NAME", help="variable with the bearer token that requests bear")
    add("--reward", choices=get_args(Reward), default="isr", help="of NeMo Gym's /verify")
    add("--policy", choices=list(POLICIES), default="nemo-0.7", help="how /verify counts verdicts")
    add("--mask-judge-failures", action="store_true", help="mask a sample whose judge failed")
    add("--concurrency", type=_at_least(1), default=usual.running, help="items judged at once")
    add("--queue", type=_at_least(0), default=usual.waiting, help="requests that may wait")
    add("--deadline-s", type=_at_least(1), default=usual.deadline_s, help="longest for one item")
    add("--max-body-mb", type=_at_least(1), default=usual.body_bytes // _MIB, help="of a request")
    add("--max-held-mb", type=_at_least(1), default=usual.held_bytes // _MIB, help="of all bodies")
    return parser.parse_args()


def _at_least(least: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        number = int(text)
        if number < least:
            raise argparse.ArgumentTypeError(f"must be {least} or more, found {number}")
        return number

    return whole
