"""The accuracy targets: one line each, on rows that chose no constant, before and after calibrating.

Sets of sources: *sweeps* vary the strategy on purpose, good and bad ones alike; *tuned tables* are what vendors and
back-ends publish of runs that they had tuned.  Step times of Megatron-LM's functional tests are in neither: tiny
models in deterministic mode.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.evidence.accuracy.statistics import memory_figures, oom_figures, time_figures
from planner.evidence.runs.prediction import Prediction
from planner.evidence.runs.sources import source_group

SWEEPS = re.compile(r"HF Ultra-Scale|vTrain")
KORTHIKANTI = re.compile(r"Korthikanti")
NOT_TUNED = re.compile(
    r"HF Ultra-Scale|vTrain|BLOOM|UCI|Korthikanti|Megatron-LM CI|fms-acceleration|fsdp_qlora|litgpt|QwenLM"
    r"|prime-rl|DLPerf|vectorlm|pytorch/ao|torchtune|NeuSight"
)
Figures = Callable[[Sequence[Prediction], Sequence[str]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Target:
    """A figure of a set of sources, and where it should lie: before and after calibrating (None = not asked)."""

    what: str
    sources: Callable[[str], bool]
    figures: Figures
    figure: str
    n: str
    before: tuple[float, float] | None
    after: tuple[float, float] | None = None


def _memory(predictions: Sequence[Prediction], keys: Sequence[str]) -> dict[str, Any]:
    return memory_figures(predictions)


def _oom(predictions: Sequence[Prediction], keys: Sequence[str]) -> dict[str, Any]:
    """Only of sources that tell which runs died: those that print survivors alone would dilute false "fits"."""
    telling = {source_group(each.row.source) for each in predictions if each.row.out_of_memory}
    figures = oom_figures([each for each in predictions if source_group(each.row.source) in telling])
    return {**figures, "n": figures["tp"] + figures["fn"]}


def _is_sweep(source: str) -> bool:
    return SWEEPS.search(source) is not None


def is_tuned(source: str) -> bool:
    """Whether a source publishes runs that someone had tuned."""
    return NOT_TUNED.search(source) is None


def _is_korthikanti(source: str) -> bool:
    return KORTHIKANTI.search(source) is not None


def _any(source: str) -> bool:
    return True


TARGETS: tuple[Target, ...] = (
    Target("step time, untuned sweeps: median", _is_sweep, time_figures, "median_ape", "n", (0, 0.15), (0, 0.08)),
    Target("step time, tuned tables: median", is_tuned, time_figures, "median_ape", "n", (0, 0.08), (0, 0.04)),
    Target("step time, Korthikanti et al.: mean", _is_korthikanti, time_figures, "mape", "n", (0, 0.06), (0, 0.035)),
    Target("ranking: picks within 5 % of the best", _any, time_figures, "good_picks", "num_groups", (0.8, 1)),
    Target("ranking: mean regret", _any, time_figures, "regret", "num_groups", (0, 0.05)),
    Target("ranking: Kendall tau, median", _any, time_figures, "median_kendall_tau", "num_groups", (0.8, 1)),
    Target("peak memory: mean", _any, _memory, "mape", "n", (0, 0.05), (0, 0.02)),
    Target("out of memory: balanced accuracy", _any, _oom, "balanced_accuracy", "n", (0.95, 1)),
    Target('out of memory: false "fits"', _any, _oom, "false_fits", "n", (0, 0.02)),
    Target("stated 90 % interval holds", _any, time_figures, "interval_coverage", "n", (0.85, 0.95), (0.85, 0.95)),
)


def headline(
    keys: Sequence[str],
    predictions: Sequence[Prediction],
    judged: Sequence[int],
    stages: Mapping[str, Sequence[Prediction]],
    held_out: Sequence[int],
) -> list[dict[str, Any]]:
    """What each target asks, what is measured, and whether that reaches it; the last stage counts as calibrated."""
    last = list(stages.values())[-1] if stages else None
    lines = []
    for target in TARGETS:
        before = _measured(target, keys, predictions, judged)
        after = None if last is None else _measured(target, keys, last, held_out)
        lines.append(
            {
                "what": target.what,
                "n": before["n"],
                "target": target.before,
                "measured": before["value"],
                "reached": _reached(before["value"], target.before),
                "calibrated_n": None if after is None else after["n"],
                "calibrated_target": target.after,
                "calibrated": None if after is None else after["value"],
                "calibrated_reached": None if after is None else _reached(after["value"], target.after),
            }
        )
    return lines


def _measured(
    target: Target, keys: Sequence[str], predictions: Sequence[Prediction], indices: Sequence[int]
) -> dict[str, Any]:
    chosen = [index for index in indices if target.sources(source_group(predictions[index].row.source))]
    figures = target.figures([predictions[index] for index in chosen], [keys[index] for index in chosen])
    enough = figures[target.n] > 0
    return {"n": figures[target.n], "value": figures[target.figure] if enough else None}


def _reached(value: float | None, target: tuple[float, float] | None) -> bool | None:
    return None if value is None or target is None else target[0] <= value <= target[1]
