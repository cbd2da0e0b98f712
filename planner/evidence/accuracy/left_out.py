"""Accuracy on sources that are left out whole: what a source that nobody has seen would get.

Two kinds of sources, told apart by the list of rows that may choose constants:

* *never used*: none of its rows chose anything; they stand as predicted, and the targets are of them alone;
* *taken back*: some of its rows chose constants.  Its other rows are predicted again without what that source chose:
  host seconds come from the other back-end of the same kind, waits that only its runs show are zero, and no spread of
  whole steps is known (``TAKEN_BACK``).

Rates of devices and links are the same in both: they come from data sheets and public operator tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.evidence.accuracy.statistics import memory_figures, oom_figures, time_figures
from planner.evidence.runs.prediction import MappedRun, Prediction, predict_runs
from planner.evidence.runs.sources import source_group
from planner.predict.physics.host import EAGER_LAUNCH_S, MEGATRON_CALL_S, MEGATRON_LAUNCH_S

NO_SPREAD: dict[str, Any] = {"time_spread": None}
VTRAIN: dict[str, Any] = {"launch_s": EAGER_LAUNCH_S, "call_s": 0.0, "collective_skew_s": 0.0, **NO_SPREAD}
TAKEN_BACK: dict[str, dict[str, Any]] = {
    "HF Ultra-Scale (nanotron)": {
        "launch_s": MEGATRON_LAUNCH_S,
        "reduction_launches": 0.0,
        "meeting_s": 0.0,
        "transfer_stall_s": 0.0,
        "kept_fragmentation": 1.0,
        "memory_spread": 0.02,
        **NO_SPREAD,
    },
    "vTrain, one node": VTRAIN,
    "vTrain, many nodes": VTRAIN,
    "Megatron-LM CI (memory)": {"launch_s": MEGATRON_LAUNCH_S, "call_s": MEGATRON_CALL_S, **NO_SPREAD},
    "llm-foundry (FSDP)": {"unfused": frozenset({"cross_entropy"}), **NO_SPREAD},
}
"""What the rows of a source chose, and what stands without them; a source that is not here chose a spread alone."""
NEVER_USED, WITHOUT_ITS_CONSTANTS = "never used", "taken back"
ALL_NEVER_USED = "all never used"
ALL_TAKEN_BACK = "all taken back"
PREFIX = "left out whole, "


def without_own_constants(runs: Iterable[MappedRun], used: frozenset[str]) -> dict[str, Prediction]:
    """Predictions of the runs of the ``used`` sources without what each source chose, by row."""
    changed = []
    for run in runs:
        group = source_group(run.row.source)
        if group in used:
            fields = TAKEN_BACK.get(group, NO_SPREAD)
            flavour = replace(run.flavour, traits=replace(run.flavour.traits, **fields))
            changed.append(replace(run, flavour=flavour, traits=replace(run.traits, **fields)))
    predictions, _ = predict_runs(changed)
    return {each.row.id: each for each in predictions}


def left_out_data(
    predictions: Sequence[Prediction],
    keys: Sequence[str],
    fitted: Sequence[bool],
    without_own: Mapping[str, Prediction],
) -> dict[str, Any]:
    """Figures by source and in all, and the targets: of rows that chose no constant."""
    used = {source_group(each.row.source) for each, spent in zip(predictions, fitted, strict=True) if spent}
    members: dict[str, list[int]] = {}
    for index, each in enumerate(predictions):
        if not fitted[index]:
            members.setdefault(source_group(each.row.source), []).append(index)
    shown = [without_own.get(each.row.id, each) for each in predictions]
    groups = [
        {"group": name, "how": WITHOUT_ITS_CONSTANTS if name in used else NEVER_USED, **_figures(shown, keys, indices)}
        for name, indices in sorted(members.items(), key=lambda item: (item[0] in used, -len(item[1]), item[0]))
    ]
    never = [index for name, indices in members.items() if name not in used for index in indices]
    taken = [index for name, indices in members.items() if name in used for index in indices]
    every = [(ALL_NEVER_USED, NEVER_USED, never), (ALL_TAKEN_BACK, WITHOUT_ITS_CONSTANTS, taken)]
    totals = [{"group": name, "how": how, **_figures(shown, keys, indices)} for name, how, indices in every if indices]
    return {"groups": [*groups, *totals], "headline": _headline(_figures(shown, keys, never))}


def _figures(predictions: Sequence[Prediction], keys: Sequence[str], indices: Sequence[int]) -> dict[str, Any]:
    chosen = [predictions[index] for index in indices]
    time = time_figures(chosen, [keys[index] for index in indices])
    memory = memory_figures(chosen)
    telling = {source_group(each.row.source) for each in chosen if each.row.out_of_memory}
    out = oom_figures([each for each in chosen if source_group(each.row.source) in telling])
    return {
        "predicted": len(chosen),
        "n": time["n"],
        "median_ape": time["median_ape"],
        "mape": time["mape"],
        "bias": time["bias"],
        "interval_coverage": time["interval_coverage"],
        "num_groups": time["num_groups"],
        "good_picks": time["good_picks"],
        "memory_n": memory["n"],
        "memory_median_ape": memory["median_ape"],
        "memory_mape": memory["mape"],
        "oom_n": out["tp"] + out["fn"],
        "balanced_accuracy": out["balanced_accuracy"],
    }


def _headline(figures: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The targets on sources that were never used."""
    asked = (
        ("step time: median", "median_ape", "n", (0, 0.12)),
        ("stated 90 % interval holds", "interval_coverage", "n", (0.85, 1)),
        ("picks within 5 % of the best", "good_picks", "num_groups", (0.7, 1)),
        ("memory: median", "memory_median_ape", "memory_n", (0, 0.1)),
        ("out of memory: balanced accuracy", "balanced_accuracy", "oom_n", (0.93, 1)),
    )
    lines = []
    for what, figure, count, target in asked:
        value = figures[figure] if figures[count] else None
        reached = None if value is None else target[0] <= value <= target[1]
        lines.append(
            {"what": PREFIX + what, "n": figures[count], "target": target, "measured": value, "reached": reached}
        )
    return lines
