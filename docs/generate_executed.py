"""Which combinations were executed: the page of ``benchmarks/results/executed`` and of who ran the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.executed_plans.record import cited, ran, read_record, recorded_backends
from benchmarks.executed_plans.values import declared_values
from docs.generate import page, table
from planner.backends.registry import software, with_files

INTRODUCTION = """Plans are drawn from each back-end's declared space so that every two values of different fields
meet in some plan. Each plan's small form ([how](../how-to/run-a-plan-on-cpu.md)) is trained for two steps on CPU ranks
by the back-end's own code, from the emitted files; the losses of the ranks must be those of one rank (relative 1e-5, or
1e-3 where a back-end multiplies experts in bf16 whatever the precision, as torchtitan does).
`python -m benchmarks.executed_plans --backend NAME` repeats it."""
VERDICTS = """*ran*: both steps, losses as on one rank. *differs*: both steps, other losses. *failed*: it was started
and ended badly. *refused*: a rule, or the lack of a small form, before anything was started. A plan that
failed may break a rule that was written for it."""
OTHERS = """Megatron-Bridge trains with Megatron-Core, and its recipe sets the fields of the same configuration;
MindSpeed imports `torch_npu`, which runs on Ascend devices alone: each value of its space is listed with the line of
its own test, or of the Megatron-Core release that it patches."""
MATRIX = """How many plans ran with both values. Degrees are told as 1 or more; a row and a column of one field never
meet."""
AXES = (
    *(("tp", ">1"), ("sp", "on"), ("cp", ">1"), ("ep", ">1"), ("etp", ">1"), ("pp", ">1"), ("vpp", ">1")),
    ("dp_replicate", ">1"),
    ("dp_shard", ">1"),
)
"""Values of the matrix beside those of ``LISTED``."""
LISTED = ("schedule", "zero_stage", "recompute", "layers", "model")
_VERDICTS = ("ran", "differs", "failed", "refused")


def executed_page() -> str:
    """Counts, then for each back-end its values, its matrix, what did not run, and what others ran."""
    names = recorded_backends()
    parts = [
        INTRODUCTION,
        table(
            (
                "back-end",
                "release",
                *(f">{verdict}" for verdict in _VERDICTS),
                ">largest difference",
                "date",
                "machine",
            ),
            (_counts(read_record(name)) for name in names),
        ),
        VERDICTS,
    ]
    for name in names:
        parts += _backend_parts(name, read_record(name))
    others = [each.name for each in with_files() if each.name not in names]
    quoted = ", ".join(f"`{name}`" for name in others)
    parts.append(f"## Not executed\n\nOf {quoted} no plan was executed here. {OTHERS}")
    for name in filter(cited, others):
        parts += [f"### {name}", _values_table(name, Counter())]
    return page("Executed plans", *parts)


def _counts(record: Mapping[str, Any]) -> tuple[str, ...]:
    found = Counter(plan["verdict"] for plan in record["plans"])
    worst = max((plan["difference"] for plan in ran(record)), default=0.0)
    numbers = [str(found[verdict]) for verdict in _VERDICTS]
    machine = f"{record['machine']}, torch {record['torch']}"
    return (f"`{record['backend']}`", record["release"], *numbers, f"{worst:.1e}", record["date"], machine)


def _backend_parts(name: str, record: Mapping[str, Any]) -> Iterator[str]:
    plans = ran(record)
    counts = Counter((field, value) for plan in plans for field, value in plan["values"].items())
    yield f"## {name}"
    yield _values_table(name, counts)
    yield MATRIX
    yield _matrix(plans)
    rows = [
        (plan["verdict"], f"`{plan.get('executed', plan['plan'])}`", plan.get("why", "other losses"))
        for plan in record["plans"]
        if plan["verdict"] != "ran"
    ]
    if rows:
        yield "Plans that did not run:"
        yield table(("verdict", "small form", "why"), rows)


def _values_table(name: str, counts: Mapping[tuple[str, str], int]) -> str:
    """Every value of the declared space: in how many plans it ran, or who shows that it runs."""
    elsewhere = {
        (each["field"], value): f"{each['why']}: {each['source']}" for each in cited(name) for value in each["values"]
    }
    rows = [
        (f"`{field}`", f"`{value}`", str(counts.get((field, value), "") or ""), elsewhere.get((field, value), ""))
        for field, values in declared_values(software(name).release.space).items()
        for value in values
    ]
    rows += [
        (f"`{field}`", f"`{value}`", "", words)
        for (field, value), words in elsewhere.items()
        if value not in declared_values(software(name).release.space).get(field, ())
    ]
    return table(("field", "value", ">plans that ran", "not executed here; who runs it"), rows)


def _matrix(plans: Sequence[Mapping[str, Any]]) -> str:
    listed = [
        (field, value)
        for field in LISTED
        for value in sorted({plan["values"][field] for plan in plans if field in plan["values"]})
    ]
    wanted = [each for each in (*AXES, *listed) if any(plan["values"].get(each[0]) == each[1] for plan in plans)]
    names = [value if field in LISTED and field != "zero_stage" else f"{field} {value}" for field, value in wanted]
    rows = [
        (name, *(_together(plans, row, column) for column in wanted)) for name, row in zip(names, wanted, strict=True)
    ]
    return table(("", *(f">{name}" for name in names)), rows)


def _together(plans: Sequence[Mapping[str, Any]], row: tuple[str, str], column: tuple[str, str]) -> str:
    if row[0] == column[0] and row != column:
        return ""
    both = sum(all(plan["values"].get(field) == value for field, value in (row, column)) for plan in plans)
    return str(both or "")
