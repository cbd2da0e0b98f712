"""Rules for every test: no test touches the user's home, no required test skips silently."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import sampling
from tests.checks import costs
from tests.postgres_server import PostgresServer, server_programs
from tests.validators import SharedWorkers
from tests.warm_python.interpreters import WarmPythons

REPOSITORY = Path(__file__).parents[1]

# Which skips are failures, by environment variable: `make test` and `.ci/run` set them where the thing must be there.
REQUIRED = {
    "MESHWRIGHT_REQUIRE_SHARED": re.compile(r"\bshared\b", re.IGNORECASE),
    "MESHWRIGHT_REQUIRE_TARGETS": re.compile(
        r"megatron|deepspeed|torch|transformers|aiconfigurator|matplotlib|validator|\bray\b", re.IGNORECASE
    ),
    "MESHWRIGHT_REQUIRE_FAKETIME": re.compile(r"libfaketime", re.IGNORECASE),
    "MESHWRIGHT_REQUIRE_WEB": re.compile(r"web pages", re.IGNORECASE),
    "MESHWRIGHT_REQUIRE_POSTGRES": re.compile(r"postgres", re.IGNORECASE),
}

# Validators are big: tests share one folder of them, filled by `make targets`.
os.environ.setdefault("MESHWRIGHT_VALIDATORS", str(REPOSITORY / ".cache" / "validators"))

# Two shared cores: no deadline.  Derandomised: a red run is red again.
settings.register_profile("meshwright", deadline=None, derandomize=True, database=None)
settings.load_profile("meshwright")


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--all-cases``, like MESHWRIGHT_TEST_ALL=1 (``tests/sampling.py``)."""
    parser.addoption("--all-cases", action="store_true", help="take every case of every matrix, not a sample")


def pytest_configure(config: pytest.Config) -> None:
    """Before workers start and tests are collected: which cases this run takes."""
    sampling.settle_run(all_cases=bool(config.getoption("--all-cases")))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A quick run leaves out what is marked ``thorough``, and of dear tests what ``tests/checks/costs.py`` says.

    Who names tests by their ids gets them.
    """
    if sampling.runs_whole() or any("::" in str(argument) for argument in config.invocation_params.args):
        return
    dear = costs.left_out(items)
    left = [item for item in items if item.get_closest_marker("thorough") or item.nodeid in dear]
    if left:
        config.hook.pytest_deselected(items=left)
        gone = set(left)
        items[:] = [item for item in items if item not in gone]


def pytest_report_header() -> str:
    """Which cases this run takes."""
    return sampling.words()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The same at the end, because a quiet run has no header."""
    terminalreporter.write_line(sampling.words())


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test an empty data folder, so that no test sees or changes anybody's plans; no inherited width."""
    for name in (
        "MESHWRIGHT_ALLOWED_HOSTS",
        *("MESHWRIGHT_DATABASE", "MESHWRIGHT_PROFILES", "MESHWRIGHT_SERVER", "MESHWRIGHT_API_KEY", "COLUMNS", "LINES"),
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path_factory.getbasetemp() / f"data-{os.urandom(6).hex()}"))


@pytest.fixture
def heeded_signals() -> Iterator[None]:
    """Requests to end reach what a test starts, also where they are ignored here (nohup, a shell's background)."""
    requests = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    ignored = [number for number in requests if signal.getsignal(number) == signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture(scope="session")
def warm_pythons() -> Iterator[WarmPythons]:
    """Interpreters that have imported torch already, each started when a test first asks for it."""
    found = WarmPythons()
    yield found
    found.close()


@pytest.fixture(scope="session")
def shared_workers() -> Iterator[SharedWorkers]:
    """Validators' processes that the tests of a session share, each started when it is first asked."""
    found = SharedWorkers()
    yield found
    found.close()


@pytest.fixture
def no_validators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a plain install: ``check`` asks every validator that is there, which takes seconds each."""
    monkeypatch.setenv("MESHWRIGHT_VALIDATORS", str(tmp_path / "validators"))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A real PostgreSQL server, one for each test process."""
    programs = server_programs()
    if programs is None:
        pytest.skip("PostgreSQL server programs are not installed (Debian: apt-get install postgresql)")
    server = PostgresServer(programs)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A fresh, empty PostgreSQL database."""
    name = f"t{os.urandom(6).hex()}"
    yield postgres_server.create_database(name)
    postgres_server.drop_database(name)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh, empty database of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'plans.db'}"
    return str(request.getfixturevalue("postgres_url"))


def _missing(reason: str) -> str | None:
    """The variable that forbids this skip, if any."""
    return next((name for name, words in REQUIRED.items() if os.environ.get(name) and words.search(reason)), None)


def _reason(longrepr: object) -> str:
    return str(longrepr[2]) if isinstance(longrepr, tuple) else str(longrepr)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure where the skipped thing must be there; say what repeats a sample that failed."""
    report = yield
    if report.when == "call" and costs.RECORD in os.environ:
        costs.record(report.nodeid, report.duration)
    if report.failed and getattr(getattr(item, "module", None), "drawn", None) is sampling.drawn:
        report.sections.append(("cases", sampling.words()))
    if report.skipped and not hasattr(report, "wasxfail"):
        variable = _missing(_reason(report.longrepr))
        if variable:
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} may not skip, because {variable} is set: {_reason(report.longrepr)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for modules that skip as a whole."""
    report = yield
    if report.outcome == "skipped":
        variable = _missing(_reason(report.longrepr))
        if variable:
            report.outcome = "failed"
            report.longrepr = f"{collector.nodeid} may not skip, because {variable} is set: {_reason(report.longrepr)}"
    return report
