"""The strategies that the back-end would refuse, known before the strategies are complete.

A rule of a back-end (``planner.backends.rules.rule``) reads some fields of a strategy.  Where it reads only fields that
are already decided, its verdict holds for everything under them, so that a core, a layout or a sharding falls with all
its leaves.  What a rule reads is watched while it runs: a field that is not decided yet stops it without a verdict.

Rules are asked early from the first strategy on that they refuse (``learn``): most rules refuse nothing in a search,
because the columns of the space already keep them.
Shape letter: R rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, fields
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np

from planner.backends.rules.rule import RuleInput, SpaceRule
from planner.search.backend_rules import BackEndRules
from planner.strategy.rows import COLUMN_OF_FIELD, COLUMNS, StrategyRows, first_of_each
from planner.strategy.strategy import Strategy
from solver.arrays import Mask

FIELDS = frozenset(field.name for field in fields(Strategy))
OF_CORES = frozenset(
    {"tp", "sp", "cp", "cp_kind", "ep", "etp", "pp", "dp", "micro_batch_size", "num_microbatches"}
    | {"overlap_tp", "overlap_ep", "dispatcher"}
)
OF_LAYOUTS = OF_CORES | {"schedule", "vpp", "microbatch_group_size", "axis_order"}
OF_SHARDINGS = OF_LAYOUTS | {
    *("dp_replicate", "dp_shard", "zero_stage", "optimizer_offload", "overlap_grad_reduce", "overlap_param_gather"),
    "fp8_parameters",
}
"""Fields that are decided at each level of the space; the rest, of memory relief, is decided by the leaf."""
COMPLETE = FIELDS | {"dp"}
_MORE: dict[str, tuple[str, ...]] = {
    **{"cp_kind": ("cp",), "dp_shard": ("dp", "dp_replicate")},
    **dict.fromkeys(("recompute", "recompute_modules", "activation_offload"), ("relief",)),
}
"""Columns that say a field together with its own, or where it has none."""


_values = attrgetter(*sorted(FIELDS))
_WRITES = [vars(Strategy)[name].__set__ for name in sorted(FIELDS)]
"""What writes each field of a strategy, which is frozen: thousands are watched."""


class _NotDecided(Exception):
    """A rule reads a field that is not decided yet."""


class _Watched(Strategy):
    """A strategy that tells what is read of it, and refuses to be read where it is not decided."""

    __slots__ = ("decided", "read")

    def __getattribute__(self, name: str) -> Any:
        if name == "dp" or name in FIELDS:
            if name not in object.__getattribute__(self, "decided"):
                raise _NotDecided(name)
            object.__getattribute__(self, "read").add(name)
        return object.__getattribute__(self, name)


class EarlyRules:
    """The rules of a search's back-end that refused something so far."""

    def __init__(self, rules: BackEndRules, strategy: Callable[[StrategyRows, int], Strategy]) -> None:
        """``strategy`` gives the strategy in a row."""
        self._rules, self._strategy = rules, strategy
        self._active: list[SpaceRule] = []
        self._reads: dict[tuple[str, frozenset[str]], set[str]] = {}
        self._verdicts: dict[tuple[str, frozenset[str]], dict[tuple[int, ...], bool]] = {}
        """What each rule said of the values that it reads."""

    def learn(self, strategy: Strategy) -> bool:
        """Ask early from now on what refuses this strategy; whether there is something new."""
        new = [rule for rule in self._rules.breaking(strategy) if rule not in self._active]
        self._active = self._active + new
        return bool(new)

    def refused(self, rows: StrategyRows, decided: frozenset[str]) -> Mask:
        """Rows of which everything under the ``decided`` fields is refused: [R]."""
        refused = np.zeros(len(rows), dtype=np.bool_)
        for rule in self._active if len(rows) else ():
            refused |= self._refused_by(rule, rows, decided)
        return refused

    def _refused_by(self, rule: SpaceRule, rows: StrategyRows, decided: frozenset[str]) -> Mask:
        """The same of one rule, asked once for all rows that agree in what it reads."""
        reads = self._reads.setdefault((rule.id, decided), set())
        said = self._verdicts.setdefault((rule.id, decided), {})
        while True:
            known = set(reads)
            columns = [getattr(rows, name) for name in _columns(known)] or [rows.tp * 0]
            first, group = first_of_each(columns)
            values = list(zip(*(column[first].tolist() for column in columns), strict=True))
            for at, value in zip(first.tolist(), values, strict=True):
                if value not in said:
                    said[value] = self._verdict(rule, self._strategy(rows, at), decided, reads)
            # A verdict holds for all that agree in the fields that it read.
            if reads <= known:
                return np.array([said[value] for value in values], dtype=np.bool_)[group]
            said.clear()

    def _verdict(self, rule: SpaceRule, strategy: Strategy, decided: frozenset[str], reads: set[str]) -> bool:
        watched = _watched(strategy, decided, reads)
        try:
            return rule.check(self._rules.given(watched)) is not None
        except _NotDecided:
            return False


@dataclass(slots=True)
class _Kept:
    """What a check said of the values in the columns that hold what it reads."""

    check: Callable[[RuleInput], bool]
    reads: set[str] = field(default_factory=set)
    values_of: Callable[[list[int]], object] = lambda values: None
    said: dict[object, bool] = field(default_factory=dict)


class KeptVerdicts:
    """Whether the back-end refuses complete strategies: each rule is asked once about the values that it reads."""

    def __init__(self, rules: BackEndRules, strategy: Callable[[StrategyRows, int], Strategy]) -> None:
        """``strategy`` gives the strategy in a row."""
        self._rules, self._strategy = rules, strategy
        self._kept = [_Kept(check) for check in rules.checks()]
        self._rows_of_values: StrategyRows | None = None
        self._values: list[list[int]] = []

    def refuses(self, rows: StrategyRows, at: int = 0) -> bool:
        """The same as ``BackEndRules.refuses`` of the strategy in row ``at``."""
        if rows is not self._rows_of_values:
            self._values = np.stack([getattr(rows, name) for name in COLUMNS], axis=1).tolist()
            self._rows_of_values = rows
        values, given = self._values[at], None
        for place, kept in enumerate(self._kept):
            said = kept.said.get(kept.values_of(values))
            if said is None:
                given = given or self._rules.given(_watched(self._strategy(rows, at), COMPLETE, kept.reads))
                said = self._asked(kept, values, given)
            if said:
                # What refuses one strategy refuses most of those that look alike: it is asked first from now on.
                self._kept.insert(0, self._kept.pop(place))
                return True
        return False

    @staticmethod
    def _asked(kept: _Kept, values: list[int], given: RuleInput) -> bool:
        """What a check says of a watched strategy, kept from now on."""
        object.__setattr__(given.strategy, "read", kept.reads)
        known, refused = len(kept.reads), kept.check(given)
        if len(kept.reads) > known:
            # A verdict holds for all that agree in the fields that it read.
            kept.values_of = itemgetter(*(COLUMNS.index(name) for name in _columns(kept.reads)))
            kept.said.clear()
        kept.said[kept.values_of(values)] = refused
        return refused


def _watched(strategy: Strategy, decided: frozenset[str], reads: set[str]) -> Strategy:
    watched = object.__new__(_Watched)
    for name, value in (("decided", decided), ("read", reads)):
        object.__setattr__(watched, name, value)
    for write, value in zip(_WRITES, _values(strategy), strict=True):
        write(watched, value)
    return watched


def _columns(names: Collection[str]) -> list[str]:
    """The columns that hold some fields."""
    own = {COLUMN_OF_FIELD.get(name, name) for name in names}
    return sorted((own & set(COLUMNS)).union(*(_MORE.get(name, ()) for name in names)))
