"""The pins that leave no legal strategy, why, and which of their values would leave some.

Of several pins the smallest set that still leaves nothing is named (``pin_conflict`` says how it is found); each of its
members is then let go alone, and the values that it takes in what is left are those that the others allow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from planner.backends.rules.legality import ModelShape
from planner.errors import DocumentInvalid
from planner.question.problem import Problem
from planner.search.core_rows import CORE_COLUMNS
from planner.search.pin_conflict import under, value_word
from planner.search.space import Space
from planner.strategy.fields import FIELD, full_name
from planner.strategy.rows import COLUMN_OF_FIELD, StrategyRows
from planner.strategy.schedules import SCHEDULE_NAMES
from planner.strategy.strategy import DISPATCHERS

MOST_CORES = 2_000
"""Cores whose layouts and shardings are written out to see which values are left."""
_CODES = {"schedule": SCHEDULE_NAMES, "dispatcher": DISPATCHERS, "axis_order": FIELD["axis_order"].words}
WHY: dict[str, Callable[[ModelShape], str]] = {
    "tp": lambda s: f"tp divides the devices ({s.num_devices}), the attention heads and the widths of the layers",
    "cp": lambda s: (
        f"cp divides the devices ({s.num_devices}) and the sequence ({s.sequence_length:,}), 2 cp for a ring"
    ),
    "pp": lambda s: (
        f"pp divides the devices ({s.num_devices}) and is at most the chunks that the layers make ({s.most_chunks})"
    ),
    "dp": lambda s: (
        f"tp x cp x pp x dp are the devices ({s.num_devices}), dp divides the batch ({s.global_batch_size})"
    ),
    "ep": lambda s: _of_experts(s, f"ep divides the experts ({min(s.experts, default=0)}) and the ranks tp x cp x dp"),
    "etp": lambda s: _of_experts(s, "etp divides tp, and ep x etp the ranks tp x cp x dp"),
    "dp_replicate": lambda s: "dp_replicate divides dp",
    "dp_shard": lambda s: "dp_replicate x dp_shard are dp",
    "micro_batch_size": lambda s: f"micro_batch_size x num_microbatches x dp are the batch ({s.global_batch_size})",
    "num_microbatches": lambda s: f"micro_batch_size x num_microbatches x dp are the batch ({s.global_batch_size})",
    "vpp": lambda s: (
        f"pp x vpp are at most the chunks that the layers make ({s.most_chunks}), and the schedule decides which vpp"
        " it takes"
    ),
    "schedule": lambda s: "a schedule needs pp > 1, the chunks it is made for, and micro-batches enough to fill it",
    "microbatch_group_size": lambda s: (
        "a group is a multiple of pp and divides the micro-batches, or leaves pp of them"
    ),
    "sp": lambda s: "sp needs tp > 1 and a sequence that tp divides",
    "cp_kind": lambda s: "all_to_all needs heads that tp x cp divides, ring a sequence that 2 cp divides",
    "axis_order": lambda s: "the order of the axes matters with pp > 1 and dp > 1 alone",
}
"""What a value of a field must do to be legal."""


def _of_experts(shape: ModelShape, why: str) -> str:
    return why if shape.is_moe else "the model has no experts"


@dataclass(frozen=True, slots=True)
class PinCause:
    """Pins that leave nothing legal; each of them is needed for that."""

    pins: tuple[tuple[str, int | str | bool], ...]
    forbids: tuple[str, ...]
    why: tuple[str, ...]
    allowed: tuple[tuple[str, tuple[int | str | bool, ...]], ...]
    """(pin, values) that the other pins leave; no values where they leave none."""

    def message(self, devices: int) -> str:
        """What leaves nothing, why, and which values would leave something."""
        words = [
            *(f"{name}={value_word(value)}" for name, value in self.pins),
            *(f"no {name}" for name in self.forbids),
        ]
        together = "leaves" if len(words) == 1 else "together leave"
        text = f"{' and '.join(words)} {together} no legal strategy on {devices} devices"
        if self.why:
            text += f": {'; '.join(self.why)}"
        left = [f"{name} may be {_some(values)}" for name, values in self.allowed if values]
        if not left:
            return text
        return f"{text}; {', or '.join(left)}" + (" with the other pins as they are" if len(words) > 1 else "")


def pin_cause(problem: Problem) -> PinCause | None:
    """The smallest set of pins and forbids under which nothing is legal; None where that is not for them."""
    constraints = problem.constraints
    names = (*constraints.pins, *constraints.forbids)
    if not names or _legal(problem) or not _legal(under(problem, frozenset())):
        return None
    needed = frozenset(names)
    for each in names:
        if not _legal(under(problem, needed - {each})):
            needed -= {each}
    narrow = under(problem, needed)
    fields = [full_name(name) for name in narrow.constraints.pins]
    shape = Space(under(problem, frozenset()), problem.cluster.num_devices).shape
    return PinCause(
        pins=tuple(narrow.constraints.pins.items()),
        forbids=narrow.constraints.forbids,
        why=tuple(dict.fromkeys(WHY[field](shape) for field in fields if field in WHY)),
        allowed=tuple((name, _allowed(problem, name)) for name in narrow.constraints.pins),
    )


def nearest(values: tuple[int | str | bool, ...], pinned: int | str | bool, count: int = 3) -> list[int | str | bool]:
    """The ``count`` values that are nearest to the pinned one, numbers by ratio; other values as they come."""
    numbers = [value for value in values if isinstance(value, int) and not isinstance(value, bool) and value > 0]
    if len(numbers) < len(values) or isinstance(pinned, (bool, str)) or pinned <= 0:
        return list(values[:count])
    return sorted(sorted(numbers, key=lambda value: max(value / pinned, pinned / value))[:count])


def _legal(problem: Problem) -> bool:
    """Whether some strategy is legal under the pins."""
    try:
        space = Space(problem, problem.cluster.num_devices)
    except DocumentInvalid:  # forbidden and pinned at once
        return False
    return len(_written_out(space)) > 0 and bool(space.relief_codes)


def _written_out(space: Space) -> StrategyRows:
    """Legal shardings of cores of every size, as many as are looked at."""
    cores = space.cores
    if len(cores) == 0:
        return cores
    cores = cores.take(np.unique(np.linspace(0, len(cores) - 1, min(MOST_CORES, len(cores))).astype(np.int64)))
    layouts, key = space.layouts(cores, np.zeros(len(cores), dtype=np.int64))
    return space.shardings(layouts, key)[0] if len(layouts) else layouts


def _allowed(problem: Problem, name: str) -> tuple[int | str | bool, ...]:
    """Values of a pinned field that are left with the other pins as they are."""
    others = frozenset({*problem.constraints.pins, *problem.constraints.forbids} - {name})
    field = full_name(name)
    space = Space(under(problem, others), problem.cluster.num_devices)
    rows = _written_out(space)
    if len(rows) == 0 or field in ("recompute", "activation_offload"):
        return ()
    if field == "dp_shard":
        return tuple(int(value) for value in np.unique(rows.dp // rows.dp_replicate))
    column = COLUMN_OF_FIELD.get(field, field)
    everywhere = space.cores if column in CORE_COLUMNS and len(space.cores) <= MOST_CORES else rows
    values = np.unique(getattr(everywhere, column)).tolist()
    if field == "cp_kind":
        kinds = np.where(rows.cp == 1, "none", np.where(rows.ring > 0, "ring", "all_to_all"))
        return tuple(np.unique(kinds).tolist())
    if field in _CODES:
        return tuple(_CODES[field][value] for value in values)
    kind = bool if FIELD[field].kind == "switch" else int
    return tuple(kind(value) for value in values)


def _some(values: tuple[int | str | bool, ...], most: int = 12) -> str:
    words = [value_word(value) for value in values]
    shown = words if len(words) <= most else [*words[: most - 1], "...", words[-1]]
    return ", ".join(shown)
