"""Predicted over measured along published scaling series: ``python -m benchmarks.scaling_series TRUTH.csv...``.

A series is one model under one configuration and software of one source that was measured on at least three numbers of
devices, the largest at least 64 and four times the smallest: only data parallelism grows.  It is *weak* where the
batch grows with the devices, *strong* where it stays.  Along a series nothing but the number of devices changes, so its
ratios should stay where they begin, wherever that is.  Untuned sweeps are left out.  ``--page`` writes the tables of
``docs/explanation/scale.md``.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from planner.evidence.runs.prediction import MappedRun, map_rows, predict_runs
from planner.evidence.runs.sources import source_group
from planner.predict.uncertainty import PLAN_LEVEL, Z
from planner.strategy.strategy import Strategy

PAGE = Path("docs/explanation/scale.md")
BEGIN, END = "<!-- series:begin -->", "<!-- series:end -->"
SWEEPS = ("HF Ultra-Scale (nanotron)", "vTrain, one node")
"""Sources of untuned sweeps, whose single runs scatter too much to make a series."""
LEAST_SIZES, LEAST_DEVICES, LEAST_GROWTH = 3, 64, 4.0
SAME_BATCH = 1.3
"""Largest over smallest batch a device (weak) or batch (strong) that still counts as the same."""


@dataclass(frozen=True, slots=True)
class Series:
    """One scaling series: devices with predicted over measured at each, without and with the wait for the slowest."""

    source: str
    precision: str
    words: str
    kind: str
    devices: tuple[int, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]

    @staticmethod
    def drift(ratios: Sequence[float]) -> float:
        """Logarithm of the last ratio over the first."""
        return math.log(ratios[-1] / ratios[0])

    @staticmethod
    def scatter(ratios: Sequence[float]) -> float:
        """Root mean square distance of ln ratio from the series' mean."""
        return float(np.std(np.log(ratios)))


def series_of(runs: Sequence[MappedRun]) -> list[Series]:
    """Every series of ``runs``, by source."""
    stripped = [replace(run, traits=replace(run.traits, waits_for_slowest=False)) for run in runs]
    after, before = (
        {(each.row.id, each.row.line): each.step_time_s for each in predict_runs(chosen)[0]}
        for chosen in (runs, stripped)
    )
    members: dict[tuple[object, ...], list[MappedRun]] = defaultdict(list)
    for run in runs:
        if source_group(run.row.source) in SWEEPS:
            continue
        if run.row.measured_step_s and (run.row.id, run.row.line) in after:
            members[_key(run)].append(run)
    found = []
    for several in members.values():
        kind = _kind(several)
        if kind is None:
            continue
        several.sort(key=lambda run: run.strategy.world_size)
        row = several[0].row
        found.append(
            Series(
                source_group(row.source),
                row.precision,
                f"{row.model}, {row.precision}, {row.sequence_length} tokens, {row.device}",
                kind,
                tuple(run.strategy.world_size for run in several),
                _ratios(several, before),
                _ratios(several, after),
            )
        )
    return sorted(found, key=lambda each: (each.source, each.kind, each.words, each.devices))


def _ratios(runs: Sequence[MappedRun], predicted_s: Mapping[tuple[str, int], float]) -> tuple[float, ...]:
    return tuple(predicted_s[run.row.id, run.row.line] / (run.row.measured_step_s or math.nan) for run in runs)


def _key(run: MappedRun) -> tuple[object, ...]:
    """What stays along a series."""
    strategy: Strategy = run.strategy
    kept = (strategy.tp, strategy.cp, strategy.pp, strategy.vpp, strategy.ep, strategy.micro_batch_size)
    row = run.row
    return (
        row.source, row.model, row.device, row.sequence_length, row.precision, row.framework_version,
        run.flavour.name, *kept, strategy.zero_stage, strategy.recompute,
    )  # fmt: skip


def _kind(runs: Sequence[MappedRun]) -> str | None:
    """Weak or strong; None where the runs make no series."""
    sizes = {run.strategy.world_size for run in runs}
    if len(sizes) < LEAST_SIZES or len(runs) != len(sizes):
        return None
    if max(sizes) < LEAST_DEVICES or max(sizes) < LEAST_GROWTH * min(sizes):
        return None
    batches = [float(run.strategy.global_batch_size) for run in runs]
    each = [batch / run.strategy.world_size for batch, run in zip(batches, runs, strict=True)]
    if max(each) <= SAME_BATCH * min(each):
        return "weak"
    return "strong" if max(batches) <= SAME_BATCH * min(batches) else None


def table(found: Sequence[Series]) -> str:
    """One row a source, precision and kind: how far ratios wander along its series."""
    groups: dict[tuple[str, str, str], list[Series]] = defaultdict(list)
    for each in found:
        groups[each.source, each.precision, each.kind].append(each)
    lines = [
        "| source | kind | series | devices | drift without | with | scatter without | with |",
        "| --- | --- | ---: | --- | ---: | ---: | ---: | ---: |",
    ]
    for (source, precision, kind), several in sorted(groups.items()):
        devices = [count for each in several for count in each.devices]
        drifts = [
            f"{100 * float(np.median([Series.drift(getattr(each, name)) for each in several])):+.1f} %"
            for name in ("before", "after")
        ]
        scatters = [
            f"{100 * math.sqrt(float(np.mean([Series.scatter(getattr(each, name)) ** 2 for each in several]))):.2f} %"
            for name in ("before", "after")
        ]
        cells = [
            f"{source}, {precision}",
            kind,
            str(len(several)),
            f"{min(devices):,} to {max(devices):,}",
            *drifts,
            *scatters,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def every_series(found: Sequence[Series]) -> str:
    """One row a series: the ratios at each number of devices."""
    lines = ["| series | kind | predicted / measured by devices |", "| --- | --- | --- |"]
    for each in found:
        ratios = ", ".join(f"{count:,}: {ratio:.2f}" for count, ratio in zip(each.devices, each.after, strict=True))
        lines.append(f"| {each.source}: {each.words} | {each.kind} | {ratios} |")
    return "\n".join(lines)


RUNGS = ((1, 8), (9, 64), (257, 512))
"""Sizes of the smaller runs of a ladder (``planner.answers.explain.trust_ladder``)."""
BEYOND = 512


def left_by_smaller_runs(runs: Sequence[MappedRun]) -> str:
    """What runs of a rung's sizes leave unsaid of runs beyond 512 devices: one row a source, rung by rung, and all.

    Of one publication, model, device, precision and software: ln of measured over predicted of the large run, less the
    median of the small ones, whatever their strategies.
    """
    predicted_s = {(each.row.id, each.row.line): each.step_time_s for each in predict_runs(runs)[0]}
    alike: dict[tuple[str, ...], list[tuple[int, float]]] = defaultdict(list)
    for run in runs:
        row, key = run.row, (run.row.id, run.row.line)
        if row.measured_step_s and key in predicted_s and source_group(row.source) not in SWEEPS:
            same = (source_group(row.source), row.source, row.model, row.device, row.precision, run.flavour.name)
            alike[same].append((run.strategy.world_size, math.log(row.measured_step_s / predicted_s[key])))
    lines = [
        "| runs of | devices of the smaller runs | runs beyond 512 | left before | after |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for low, high in RUNGS:
        errors: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for alike_in, sizes in alike.items():
            small = [error for size, error in sizes if low <= size <= high]
            large = [error for size, error in sizes if size > BEYOND]
            if small:
                errors[alike_in[0]] += [(error, error - float(np.median(small))) for error in large]
        errors = {source: found for source, found in errors.items() if found}
        for source, found in [*sorted(errors.items()), ("all", [pair for each in errors.values() for pair in each])]:
            if found:
                before, after = (f"{_spread([pair[side] for pair in found]):.3f}" for side in (0, 1))
                lines.append(f"| {source} | {low} to {high} | {len(found)} | {before} | {after} |")
    return "\n".join(lines)


def _spread(errors: Sequence[float]) -> float:
    """The 80 % quantile of the sizes of errors as a standard deviation."""
    return float(np.quantile(np.abs(errors), PLAN_LEVEL)) / Z


def main() -> int:
    """Print the tables, or write the page."""
    from planner.cli.commands.accuracy import read_truth_files

    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling_series")
    parser.add_argument("truth", nargs="+", type=Path)
    parser.add_argument("--page", action="store_true", help=f"write the tables into {PAGE}")
    chosen = parser.parse_args()
    rows, _ = read_truth_files(chosen.truth)
    runs, _ = map_rows([row for row in rows if not row.out_of_memory])
    found = series_of(runs)
    text = "\n\n".join((table(found), "### Every series, with the term\n\n" + every_series(found)))
    text += (
        "\n\n### What smaller runs leave beyond 512 devices (standard deviation of ln ratio)\n\n"
        + left_by_smaller_runs(runs)
    )
    if not chosen.page:
        print(text)
        return 0
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    PAGE.write_text(f"{head}{BEGIN}\n{text}\n{END}{tail}", encoding="utf-8")
    print(f"written: {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
