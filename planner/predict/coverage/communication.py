"""The collective times that the communication of a step is made from, recorded while the cost model works."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
from numpy.typing import NDArray

from planner.predict.collective import Collective, Groups
from planner.predict.cost.hardware import Hardware
from planner.predict.coverage.leaning import Leaning, rung_and_sigma, whole_shape
from planner.strategy.strategy import Strategy
from solver.arrays import Array

UNUSED = ""


@dataclass(frozen=True, slots=True)
class RecordingHardware(Hardware):
    """Hardware that notes every collective that it is asked for."""

    asked: dict[tuple[str, int, int, int], float] = field(default_factory=dict)

    @classmethod
    def around(cls, hardware: Hardware) -> RecordingHardware:
        """The same hardware, listening."""
        return cls(**{each.name: getattr(hardware, each.name) for each in fields(Hardware)})

    def collective_s(self, op: Collective, size_bytes: Array, group_size: Array, stride: Array) -> Array:
        """Seconds as without listening; the first row is noted."""
        seconds = Hardware.collective_s(self, op, size_bytes, group_size, stride)
        columns = np.broadcast_arrays(size_bytes, group_size, stride, seconds)
        size, group, step, time_s = (float(np.ravel(column)[0]) for column in columns)
        if time_s > 0:
            key = (op, round(size), round(group), round(step))
            self.asked[key] = self.asked.get(key, 0.0) + time_s
        return seconds

    def groups_collective_s(
        self, op: Collective, size_bytes: Array, groups: Groups, where: NDArray[np.bool_] | None = None
    ) -> Array:
        """The same over known groups."""
        picked = slice(None) if where is None else where
        return self.collective_s(op, size_bytes, groups.size[picked], groups.stride[picked])


def communication_leanings(
    recorded: RecordingHardware, strategy: Strategy, breakdown_s: dict[str, float]
) -> list[Leaning]:
    """Noted collectives by term, their seconds scaled to what the term takes of the step."""
    by_term: dict[str, list[tuple[tuple[str, int, int, int], float]]] = {}
    for key, seconds in recorded.asked.items():
        by_term.setdefault(_term(key, strategy), []).append((key, seconds))
    found: list[Leaning] = []
    for term, noted in by_term.items():
        step_s, total_s = breakdown_s.get(term, 0.0), sum(seconds for _, seconds in noted)
        if step_s <= 0 or total_s <= 0:
            continue
        for (op, size, group, stride), seconds in noted:
            one = [np.array([float(value)]) for value in (size, group, stride)]
            rung, sigma = rung_and_sigma(recorded.collective_prediction(op, *one), "network")  # type: ignore[arg-type]
            shape = whole_shape(size_bytes=float(size), group_size=float(group), stride=float(stride))
            found.append(Leaning(term, op, "", "", shape, rung, sigma, seconds / total_s * step_s))
    return found


def _term(key: tuple[str, int, int, int], strategy: Strategy) -> str:
    """The axis that a group belongs to, by its size and stride; the once-a-step groups are what is left.

    The cost model asks for both ways of splitting a sequence and takes one: the other has no term.
    """
    op, _, group, stride = key
    if op == "send_recv":
        return "pp_send"
    if strategy.ep > 1 and op == "all_to_all" and group == strategy.ep and stride == strategy.etp:
        return "ep"
    if strategy.cp > 1 and group == strategy.cp and stride == strategy.tp:
        return "cp" if (op == "all_gather") == (strategy.cp_kind == "ring") else UNUSED
    if strategy.tp > 1 and group == strategy.tp and stride == 1:
        return "tp" if (op != "all_reduce") == strategy.sp else UNUSED
    return "dp"
