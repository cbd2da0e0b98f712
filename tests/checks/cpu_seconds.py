"""What tests cost in CPU seconds: ``python -m pytest -p tests.checks.cpu_seconds [--cpu-figures FILE] PATHS``.

A test's figure is the user and system time of its process and of the children that ended within it, with its fixtures'
set-up and tear-down: it does not depend on what else the machine does, as wall time does.  A fixture that several tests
share counts at the first one.  At the end: all of it by phase, and the dearest tests and files.
"""

from __future__ import annotations

import json
import resource
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

DEAREST = 40


def spent_s() -> float:
    """User and system seconds of this process and of its children that ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


class Costs:
    """Seconds of every test of one process; xdist workers send theirs with the test's report."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.seconds: dict[str, float] = {}
        self.collecting_s = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Imports of test modules and their parameters."""
        before = spent_s()
        found = yield
        self.collecting_s = spent_s() - before
        return found

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Set-up, call and tear-down of one test."""
        before = spent_s()
        done = yield
        self.seconds[item.nodeid] = spent_s() - before
        return done

    def pytest_sessionfinish(self) -> None:
        """A worker's figures go to the process that prints."""
        output = getattr(self.config, "workeroutput", None)
        if output is not None:
            output["cpu_seconds"] = dict(self.seconds)
            output["cpu_collecting_s"] = self.collecting_s

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        """Figures of a worker that has ended."""
        output = getattr(node, "workeroutput", {})
        self.seconds.update(output.get("cpu_seconds", {}))
        self.collecting_s += output.get("cpu_collecting_s", 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The dearest of all."""
        write = terminalreporter.write_line
        files: dict[str, float] = defaultdict(float)
        for name, seconds in self.seconds.items():
            files[name.partition("::")[0]] += seconds
        all_s = sum(self.seconds.values())
        write(f"CPU seconds: collecting {self.collecting_s:.1f}, {len(self.seconds)} tests {all_s:.1f}")
        for table in (files, self.seconds):
            for name, seconds in sorted(table.items(), key=lambda each: -each[1])[:DEAREST]:
                write(f"{seconds:9.2f}  {name}")
        target = self.config.getoption("--cpu-figures")
        if target:
            figures = {"collecting_s": self.collecting_s, "tests_s": dict(self.seconds)}
            Path(target).write_text(json.dumps(figures, indent=1), encoding="utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the figures go."""
    parser.addoption("--cpu-figures", help="write CPU seconds of collecting and of each test to this file, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """One account a process."""
    config.pluginmanager.register(Costs(config), "cpu-seconds-account")
