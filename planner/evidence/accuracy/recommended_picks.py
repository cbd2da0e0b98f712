"""The speed that the recommended pick loses: measured runs of one question, picked as a search recommends.

In each ranking group both picks are made among the runs that a search would allow: those with the usual chance to fit,
or all where none has it.  *fastest*: the one predicted to be fastest.  *recommended*: of those predicted within the
band of it and as sure to fit, the first in the order of ``planner.search.recommend``.  The layers of a run are dealt
by its back-end, so that unequal ones are nobody's choice and count for nothing here.  The regret of a pick is one minus
best measured time / its measured time, averaged over groups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from planner.evidence.runs.prediction import Prediction
from planner.predict.memory.fit_chance import fits_probability
from planner.question.problem import USUAL_CHANCE
from planner.search.mechanisms import is_common, mechanisms_of
from planner.search.recommend import BAND, SURE


@dataclass(frozen=True, slots=True)
class Run:
    """What decides between measured runs of one question; ``part``: fitted or judged."""

    key: str
    part: str
    predicted_s: float
    measured_s: float
    chance: float
    num_mechanisms: int
    common: bool


def runs_of(keys: Sequence[str], predictions: Sequence[Prediction], fitted: Sequence[bool]) -> list[Run]:
    """The rows that state a step time."""
    return [
        Run(
            key=key,
            part="fitted" if used else "judged",
            predicted_s=each.step_time_s,
            measured_s=each.row.measured_step_s,
            # Where a row is silent about recompute it may have had what let it fit.
            chance=fits_probability(each.device_memory_bytes, each.least_memory_bytes, each.flavour.backend),
            num_mechanisms=len(mechanisms_of(each.strategy, ())),
            common=is_common(each.strategy, each.num_layers, each.devices_per_node),
        )
        for key, each, used in zip(keys, predictions, fitted, strict=True)
        if each.row.measured_step_s is not None
    ]


def picks(runs: Sequence[Run], band: float = BAND) -> tuple[Run, Run]:
    """The fastest and the recommended pick of one group."""
    allowed = [run for run in runs if run.chance >= USUAL_CHANCE] or list(runs)
    fastest = min(allowed, key=lambda run: run.predicted_s)
    near = [
        run
        for run in allowed
        if run.predicted_s <= fastest.predicted_s * (1.0 + band) and run.chance >= min(fastest.chance, SURE)
    ]
    return fastest, min(near, key=_order)


def _order(run: Run) -> tuple[bool, int, bool, float]:
    return run.chance < SURE, run.num_mechanisms, not run.common, run.predicted_s


def pick_data(runs: Sequence[Run]) -> dict[str, Any]:
    """Both parts: groups of two runs or more, how many have another recommended pick, and the mean regret of each."""
    data: dict[str, Any] = {"band": BAND, "sure": SURE}
    for part in ("fitted", "judged"):
        members: dict[str, list[Run]] = defaultdict(list)
        for run in runs:
            if run.part == part:
                members[run.key].append(run)
        groups = [group for group in members.values() if len(group) > 1]
        picked = [picks(group) for group in groups]
        best_s = [min(run.measured_s for run in group) for group in groups]

        def regret(which: int, chosen: Sequence[tuple[Run, Run]] = picked, least: Sequence[float] = best_s) -> Any:
            lost = [1.0 - least_s / pair[which].measured_s for least_s, pair in zip(least, chosen, strict=True)]
            return sum(lost) / len(lost) if lost else None

        data[part] = {
            "groups": len(groups),
            "differ": sum(fastest is not recommended for fastest, recommended in picked),
            "fastest_regret": regret(0),
            "recommended_regret": regret(1),
        }
    return data
