"""What is emitted was executed: every value of every declared space ran, or has a citation of who runs it."""

from __future__ import annotations

import re

import pytest

from benchmarks.executed_plans.record import cited, executed_values, ran, read_record, recorded_backends
from benchmarks.executed_plans.values import declared_values, strategy_values
from planner.backends.ranks.runner import BF16_TOLERANCE, FP32_TOLERANCE
from planner.backends.registry import names_with_files, software
from planner.strategy.strategy import Strategy

NOTHING_YET = frozenset[str]()
"""Rooms of whose space much was not executed yet; the page says so."""
SAME_TRAINER = {"megatron-bridge": "megatron"}
"""Its recipe sets the fields of Megatron-Core's own configuration, which the other's files set."""
LINE = re.compile(r"^\S+/\S+ \S+ \S+(:\d+(-\d+)?)?$|^\S+ [\d.]+ \S+:\d+(-\d+)?$")
"""``owner/repository commit path:line``, or ``package release path:line``."""


@pytest.mark.parametrize("name", sorted(set(names_with_files()) - NOTHING_YET))
def test_every_value_of_the_space_ran_or_is_cited(name: str) -> None:
    shown = SAME_TRAINER.get(name, name)
    known = executed_values(ran(read_record(shown)))
    for each in cited(shown):
        known.setdefault(each["field"], set()).update(each["values"])
    declared = declared_values(software(name).release.space)
    missing = {field: set(values) - known.get(field, set()) for field, values in declared.items()}
    assert not any(missing.values()), {field: values for field, values in missing.items() if values}


@pytest.mark.parametrize("name", names_with_files())
def test_citations_name_a_line(name: str) -> None:
    for each in cited(name):
        assert LINE.match(each["source"]), each
        assert each["why"]
        assert each["values"]


@pytest.mark.parametrize("name", recorded_backends())
def test_records_are_of_the_release_that_files_are_for(name: str) -> None:
    record = read_record(name)
    assert record["release"] == software(name).release.version
    for plan in ran(record):
        assert len(plan["losses"]) == 2
        assert plan["losses"][0] != plan["losses"][1]
        # torchtitan multiplies experts in bf16 whatever the precision.
        in_bf16 = name == "torchtitan" and "experts" in plan["values"]["model"]
        assert plan["difference"] <= (BF16_TOLERANCE if in_bf16 else FP32_TOLERANCE)


def test_a_schedule_that_nobody_ran_is_missing() -> None:
    values = strategy_values(Strategy(pp=2, vpp=2, schedule="zbv", num_microbatches=4))
    assert values["schedule"] == "zbv"
    assert "zbv" not in executed_values(ran(read_record("torchtitan"))).get("schedule", set())
