"""The model's ability to tell two configurations of one question apart.

Over all pairs of runs of one ranking group, with ``x = ln(slower prediction / faster prediction)``: how often is the
run that was predicted to be faster really faster?  *Fitted* to the fit part, one parameter::

    P(right) = F(x / spread)          F: Student's t with four degrees of freedom (planner.predict.memory.fit_chance)

and reported on the other part, beside the plain share in bins of ``x``.  Equal measured times count as half right.  A
group's pairs weigh one run's worth each (1 / (runs - 1)), so that a group of fifty runs is fifty runs and not 1,225.
Only pairs near the top decide what is picked: ``near`` keeps those whose both runs are predicted within ``NEAR`` of the
group's fastest.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from planner.predict.memory.fit_chance import student_4_column, student_4_quantile
from solver.arrays import Array

EDGES = (0.0, 0.01, 0.02, 0.05, 0.10, 0.20, math.inf)
"""Of the predicted ratio less one."""
NEAR = 1.25
WANTED = 0.75
"""An order that is right less often than this is none."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """``slower``: predicted ratio less one; ``right``: 1, 0 or 0.5; ``weight``; ``num_groups`` they are from."""

    slower: Array
    right: Array
    weight: Array
    num_groups: int


def pairs_of(
    keys: Sequence[str], predicted_s: Sequence[float], measured_s: Sequence[float], near: float = math.inf
) -> Pairs:
    """All pairs of runs that share a key; ``near``: of runs predicted within this multiple of the fastest."""
    members: dict[str, list[int]] = defaultdict(list)
    for index, key in enumerate(keys):
        members[key].append(index)
    rows, groups = [], 0
    for found in members.values():
        least_s = min(predicted_s[index] for index in found)
        close = [index for index in found if predicted_s[index] <= near * least_s]
        groups += len(close) > 1
        for one, other in combinations(close, 2):
            fast, slow = sorted((one, other), key=lambda index: predicted_s[index])
            right = 0.5 if measured_s[fast] == measured_s[slow] else float(measured_s[fast] < measured_s[slow])
            rows.append((predicted_s[slow] / predicted_s[fast] - 1.0, right, 1.0 / (len(close) - 1)))
    columns = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return Pairs(columns[:, 0], columns[:, 1], columns[:, 2], groups)


def fitted_spread(pairs: Pairs) -> float | None:
    """The most likely spread; None without pairs."""
    if not len(pairs.slower):
        return None
    logs = np.log1p(pairs.slower)
    spreads = np.geomspace(0.002, 2.0, 400)
    chances = [np.clip(student_4_column(logs / spread), 1e-6, 1 - 1e-6) for spread in spreads]
    values = [
        float(pairs.weight @ (pairs.right * np.log(chance) + (1.0 - pairs.right) * np.log1p(-chance)))
        for chance in chances
    ]
    return float(spreads[int(np.argmax(values))])


def band(spread: float, wanted: float = WANTED) -> float:
    """Predicted ratio less one below which the order is right less often than ``wanted``."""
    return math.expm1(spread * student_4_quantile(wanted))


def pair_figures(pairs: Pairs, spread: float | None) -> list[dict[str, Any]]:
    """By bins of the predicted ratio: pairs, share that was right, and what the fitted curve says."""
    rows = []
    for low, high in pairwise(EDGES):
        inside = (pairs.slower >= low) & (pairs.slower < high)
        weight, logs = pairs.weight[inside], np.log1p(pairs.slower[inside])
        curve = None
        if spread is not None and len(weight):
            curve = float(np.average(student_4_column(logs / spread), weights=weight))
        rows.append(
            {
                "from": low,
                "to": None if math.isinf(high) else high,
                "pairs": int(np.count_nonzero(inside)),
                "right": float(np.average(pairs.right[inside], weights=weight)) if len(weight) else None,
                "curve": curve,
            }
        )
    return rows


def apart_data(
    keys: Sequence[str], predicted_s: Sequence[float], measured_s: Sequence[float], fitted: Sequence[bool]
) -> dict[str, Any]:
    """Both parts, all pairs and those near the top, under the spread of the fit part."""

    def part(used: bool, near: float) -> Pairs:
        at = [index for index, each in enumerate(fitted) if each == used]
        return pairs_of(
            [keys[index] for index in at],
            [predicted_s[index] for index in at],
            [measured_s[index] for index in at],
            near,
        )

    data: dict[str, Any] = {}
    for name, near in (("every", math.inf), ("near", NEAR)):
        spread = fitted_spread(part(True, near))
        data[name] = {
            "spread": spread,
            "band": None if spread is None else band(spread),
            **{
                said: {"groups": (found := part(used, near)).num_groups, "bins": pair_figures(found, spread)}
                for said, used in (("fitted", True), ("judged", False))
            },
        }
    return data
