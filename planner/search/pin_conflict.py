"""The pins that the back-end cannot take, by which of its rules, and the other values that it would take.

Pins are in conflict with a back-end when nothing is left under them that it runs.  Of several pins the smallest set
that still leaves nothing is named: they are let go one after the other, and a pin whose absence changes nothing stays
away. What is left needs every one of its members (an irreducible set; the deletion filter of Chinneck and Dravnieks,
ORSA Journal on Computing 3, 1991).

*Nothing is left* means: the back-end's columns (``planner.backends.rules.columns``) hold no strategy, or all of them
break a rule of its.  Rules are asked without a split, about some strategies of every kind, so that the cost does not
grow with the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from planner.backends.asked import the_software
from planner.backends.registry import software
from planner.backends.rules.columns import Columns
from planner.errors import DocumentInvalid
from planner.question.problem import UNRESTRICTED, Constraints, Problem
from planner.search.backend_rules import BackEndRules
from planner.search.space import Space
from planner.strategy.fields import full_name, values_of
from planner.strategy.rows import StrategyRows, distinct_rows
from planner.strategy.strategy import Strategy

FEW = 200
"""Rows that are looked at without choosing."""
EACH = 2
"""Rows of a kind that are looked at where there are more."""
_DEGREES = frozenset(
    {"tp", "cp", "pp", "vpp", "dp", "dp_replicate", "ep", "etp", "micro_batch_size", "num_microbatches"}
)
_COLUMNS = {
    "zero_stage": ("zero_stages", "zero_stages_with_pipeline"),
    "schedule": ("schedules",),
    "vpp": ("schedules",),
    "microbatch_group_size": ("schedules", "group_factors", "derived_group"),
    "cp_kind": ("cp_kinds", "denoiser_cp_kinds"),
    "axis_order": ("axis_orders",),
    "tp": ("tensor_parallel", "repeated_kv_heads"),
    "sp": ("sequence_parallel",),
    "cp": ("cp_kinds", "denoiser_cp_kinds"),
    "pp": ("pipeline_parallel", "zero_stages_with_pipeline"),
    "ep": ("expert_parallel",),
    "etp": ("expert_tensor_parallel", "expert_tensor"),
    "dp_replicate": ("hybrid_sharding", "hybrid_zero_stages"),
    "optimizer_offload": ("optimizer_offload",),
    "activation_offload": ("activation_offload",),
    "recompute": ("recompute", "selective_modules"),
    "overlap_grad_reduce": ("overlap_grad_with_pipeline",),
}
"""Columns of a back-end's space that decide which values of a field are declared at all."""


@dataclass(frozen=True, slots=True)
class PinConflict:
    """Pins that leave nothing that the back-end runs; each of them is needed for that."""

    backend: str
    pins: tuple[str, ...]
    """``zero_stage=2``, or ``no cp`` for a forbid."""
    rules: tuple[str, ...]
    """The back-end's rules, of which every strategy under the pins breaks one, in their own words."""
    instead: tuple[tuple[str, int | str | bool], ...]
    """(pin, value): other values of a named setting under which, all else equal, something is left."""

    @property
    def message(self) -> str:
        """What contradicts what, and why."""
        verb = "contradicts" if len(self.pins) == 1 else "together contradict"
        why = "; ".join(self.rules) or "the search inside this back-end does not try it"
        return f"{' and '.join(self.pins)} {verb} the rules of {self.backend}: {why}"


def pin_conflict(problem: Problem) -> PinConflict | None:
    """The smallest set of pins and forbids that the problem's one back-end cannot take; None if it is not for them."""
    constraints, name = problem.constraints, the_software(problem).name
    names = (*constraints.pins, *constraints.forbids)
    if name == UNRESTRICTED or not names or _leaves_something(problem):
        return None
    if not _leaves_something(under(problem, frozenset())):
        return None
    needed = frozenset(names)
    for each in names:
        if not _leaves_something(under(problem, needed - {each})):
            needed -= {each}
    narrow = under(problem, needed)
    refused = list(_strategies(Space(narrow, problem.cluster.num_devices, _wider(narrow))))
    if not refused:
        return None  # contradictory whatever the back-end
    pins = tuple(f"{name}={value_word(value)}" for name, value in narrow.constraints.pins.items())
    return PinConflict(
        backend=name,
        pins=(*pins, *(f"no {name}" for name in narrow.constraints.forbids)),
        rules=_named_rules(BackEndRules(narrow), refused),
        instead=tuple(_instead(problem, narrow.constraints)),
    )


def repinned(problem: Problem, name: str, value: int | str | bool) -> Problem:
    """The problem with one pin on another value."""
    pins = {**problem.constraints.pins, name: value}
    return problem.model_copy(update={"constraints": problem.constraints.model_copy(update={"pins": pins})})


def under(problem: Problem, names: frozenset[str]) -> Problem:
    """The problem with these pins and forbids alone."""
    constraints = problem.constraints
    pins = {name: value for name, value in constraints.pins.items() if name in names}
    kept = {"pins": pins, "forbids": tuple(name for name in constraints.forbids if name in names)}
    return problem.model_copy(update={"constraints": constraints.model_copy(update=kept)})


def _leaves_something(problem: Problem) -> bool:
    rules = BackEndRules(problem)
    try:
        space = Space(problem, problem.cluster.num_devices)
    except DocumentInvalid:  # forbidden at once
        return False
    return any(not rules.refuses(strategy) for strategy in _strategies(space))


def _strategies(space: Space) -> Iterator[Strategy]:
    """Strategies of every kind that the space holds, ``EACH`` of a kind at every level; all of them where it is small.

    A kind is which axes and switches are on, and what the schedule, ZeRO and relief are: what rules mostly speak of.
    """
    cores = _of_every_kind(space.cores)
    if len(cores) == 0:
        return
    layouts = _of_every_kind(space.layouts(cores, _no_key(cores))[0])
    shardings = _of_every_kind(space.shardings(layouts, _no_key(layouts))[0])
    leaves = _of_every_kind(space.leaves(shardings, _no_key(shardings))[0])
    for row in range(len(leaves)):
        yield leaves.strategy(row, space.reliefs)


def _no_key(rows: StrategyRows) -> NDArray[np.int64]:
    return np.zeros(len(rows), dtype=np.int64)


def _of_every_kind(rows: StrategyRows) -> StrategyRows:
    """``EACH`` rows of every kind, spread over its rows."""
    if len(rows) <= FEW:
        return rows
    columns = [getattr(rows, each.name) for each in fields(StrategyRows)]
    names = [each.name for each in fields(StrategyRows)]
    kinds = [column > 1 if name in _DEGREES else column for name, column in zip(names, columns, strict=True)]
    _, kind = distinct_rows([each.astype(np.int64) for each in kinds])
    order = np.argsort(kind, kind="stable")
    firsts = np.flatnonzero(np.diff(kind[order], prepend=-1))
    ends = np.append(firsts[1:], len(order))
    picked = [np.linspace(begin, end - 1, min(EACH, end - begin)) for begin, end in zip(firsts, ends, strict=True)]
    return rows.take(np.sort(order[np.concatenate(picked).astype(np.int64)]))


def _wider(problem: Problem) -> Columns:
    """The back-end's columns with every value of the pinned fields declared, so that its rules can speak about them."""
    constraints = problem.constraints
    fields = [full_name(name) for name in (*constraints.pins, *constraints.forbids)]
    everything = software(UNRESTRICTED).release.space.columns
    columns = {column: getattr(everything, column) for field in fields for column in _COLUMNS.get(field, ())}
    # Which axes exclude each other is said by rules too.
    return replace(the_software(problem).release.space.columns, apart=(), **columns)


def _named_rules(rules: BackEndRules, refused: list[Strategy]) -> tuple[str, ...]:
    """The fewest rules that refuse all of the strategies (greedily), each in the words that it has for the first one.

    None when a strategy is refused by no rule: the search inside the back-end just does not try it.
    """
    left = [{message.partition(":")[0]: message for message in rules.messages(each)} for each in refused]
    if not all(left):
        return ()
    named: list[str] = []
    while left:
        rule = Counter(rule for broken in left for rule in broken).most_common(1)[0][0]
        named.append(next(broken[rule] for broken in left if rule in broken))
        left = [broken for broken in left if rule not in broken]
    return tuple(named)


def _instead(problem: Problem, conflict: Constraints) -> Iterator[tuple[str, int | str | bool]]:
    """Other values of each pin in the conflict that leave something, the other pins of the problem kept."""
    for name, pinned in conflict.pins.items():
        for value in values_of(full_name(name)):
            if value != pinned and _leaves_something(repinned(problem, name, value)):
                yield name, value


def value_word(value: object) -> str:
    """A value as it is pinned."""
    return str(value).lower() if isinstance(value, bool) else str(value)
