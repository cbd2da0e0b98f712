"""How often a training job fails, by kind, from published runs (``failures.toml``) or from a rate that is given.

Failures of devices are independent of each other and do not depend on age: the rate of a job is its devices times the
rate of one, and the times between failures are exponential.  So a rate measured on one number of devices is used on
another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.errors import DocumentInvalid
from planner.question.reliability import Reliability
from profiles.shipped_tables import shipped_table

USUAL_RUN = "llama-3-405b"
"""The run with the most device hours whose failures are published by kind."""
GIVEN = "given"


@dataclass(frozen=True, slots=True)
class FailureKind:
    """One kind of failure: failures of one device an hour, and whether its node is out until it is repaired."""

    kind: str
    per_device_hour: float
    takes_node: bool


@dataclass(frozen=True, slots=True)
class FailureRates:
    """The kinds of failure of a run, and where they are published."""

    run: str
    source: str
    devices: int
    kinds: tuple[FailureKind, ...]

    def per_device_hour(self, *, only_nodes: bool = False) -> float:
        """Failures of one device an hour; ``only_nodes``: those that take a node out."""
        return sum(each.per_device_hour for each in self.kinds if each.takes_node or not only_nodes)


def published_runs() -> tuple[str, ...]:
    """Names of the runs whose failures are known."""
    return tuple(_table())


def failure_rates(run: str) -> FailureRates:
    """The rates of a published run: events / (devices x hours).  Raises DocumentInvalid for a run that is not known."""
    if run not in _table():
        raise DocumentInvalid(
            f"no failures of a run {run!r} are known",
            where="failures_of",
            hint=f"one of {', '.join(published_runs())}, or give failures_per_device_hour",
        )
    entry = _table()[run]
    hours = entry["devices"] * entry["days"] * 24.0
    kinds = tuple(
        FailureKind(kind, event["count"] / hours, event["takes_node"]) for kind, event in entry["events"].items()
    )
    return FailureRates(run, entry["source"], entry["devices"], kinds)


def spread() -> float:
    """The highest rate of the published runs over the lowest."""
    rates = [failure_rates(run).per_device_hour() for run in published_runs()]
    return max(rates) / min(rates)


def rates_of(asked: Reliability, device: str) -> FailureRates:
    """The rates that are asked for on a kind of device.  Raises DocumentInvalid."""
    if asked.failures_per_device_hour is None:
        return failure_rates(asked.failures_of or run_of_device(device))
    if asked.failures_of is not None:
        raise DocumentInvalid(
            "a published run and a rate are given",
            where="failures_of failures_per_device_hour",
            hint="give one of them",
        )
    return given_rates(asked.failures_per_device_hour)


def given_rates(per_device_hour: float) -> FailureRates:
    """One rate that is said and not published; every failure takes a node."""
    return FailureRates(GIVEN, "given with the question", 0, (FailureKind("any", per_device_hour, True),))


def run_of_device(name: str) -> str:
    """The run to take for a device: the one on its kind with the most device hours, else the usual one."""
    words = name.lower()
    runs = [run for run, entry in _table().items() if any(kind in words for kind in entry["device_kinds"])]
    return runs[0] if runs else USUAL_RUN


def _table() -> dict[str, Any]:
    return shipped_table("planner.search.goodput", "failures.toml")
