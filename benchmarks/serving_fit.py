"""Fit the few factors of engines to measured serving points, and print what goes into ``engines/*/behaviour.py``.

    python -m benchmarks.serving_fit TRUTH.csv... [--most N]

Fitted on half of the sweeps (``planner.serving.evidence.judged.is_fitted_on``), at most N points of each generation of
releases, drawn by the hash of their ids; intervals are of all points of the same half, with the fitted factors.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from planner.serving.evidence.behaviours import BEHAVIOURS, generation
from planner.serving.evidence.fit import fits_well, fitted, intervals, shrunk
from planner.serving.evidence.judged import Judged, is_fitted_on, sweep_of
from planner.serving.evidence.mapped import MeasuredPoint, mapped
from planner.serving.evidence.predicted import Prepared, prepared
from planner.serving.evidence.truth import read_serving_truth
from planner.serving.evidence.unmapped import RowUnmapped


def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=120)
    arguments = parser.parse_args()
    judged: list[Judged] = []
    behaviours = dict(BEHAVIOURS)
    for name, points in _points(arguments.files, arguments.most, every=False).items():
        fields = shrunk(fitted(points, BEHAVIOURS[name]), len({sweep_of(each.point) for each in points}))
        print(name, len(points), fields)
        behaviours[name] = replace(BEHAVIOURS[name], **fields)  # type: ignore[arg-type]
    for name, points in _points(arguments.files, 1 << 30, every=True).items():
        for each in points:
            with contextlib.suppress(RowUnmapped):
                judged.append(Judged(each.point, each.predicted(behaviours[name])))
    for quantity, by_engine in intervals(judged).items():
        print(quantity, {engine: tuple(round(bound, 2) for bound in bounds) for engine, bounds in by_engine.items()})


def _points(paths: list[Path], most: int, *, every: bool) -> dict[str, list[Prepared]]:
    found: dict[str, list[MeasuredPoint]] = defaultdict(list)
    for path in paths:
        for row in read_serving_truth(path.read_text(encoding="utf-8"), str(path)):
            try:
                point = mapped(row)
            except RowUnmapped:
                continue
            if is_fitted_on(point) and (every or fits_well(point)):
                found[generation(point.engine, point.release)].append(point)
    ready: dict[str, list[Prepared]] = defaultdict(list)
    for name, points in found.items():
        points.sort(key=lambda point: hashlib.sha256(point.row.id.encode()).hexdigest())
        for point in points[:most]:
            try:
                ready[name].append(prepared(point, BEHAVIOURS[name]))
            except RowUnmapped:
                continue
    return ready


if __name__ == "__main__":
    main()
