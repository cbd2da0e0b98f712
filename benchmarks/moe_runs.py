"""Published runs of mixtures of experts beside their predictions: ``python -m benchmarks.moe_runs TRUTH.csv...``.

One line a run with the shares of its step by term, then the errors by publication and over all, apart for runs that
helped to choose a constant (``fitted``) and for the others.  ``benchmarks/published/moe_runs.csv`` comes with the
planner: Megatron-MoE-ModelZoo's five configurations of Qwen3-235B and DeepSeek-V3's own run.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from planner.evidence.accuracy.fitted_rows import FittedRows, committed_fitted_rows
from planner.evidence.runs.prediction import Prediction, predict_rows
from planner.evidence.runs.sources import source_group
from planner.evidence.runs.truth import TruthRow, read_truth

OURS = Path(__file__).parent / "published" / "moe_runs.csv"
FITTED_HOST = "modelzoo-qwen3-235b-e"
"""The run on which the host of Megatron-Core's experts was fitted (``planner.predict.physics.host``)."""
LEAST_SHARE = 0.01


def main() -> int:
    """Print the runs and their errors."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.moe_runs")
    parser.add_argument("truth", nargs="*", type=Path)
    files = [OURS, *parser.parse_args().truth]
    fitted, found = committed_fitted_rows(), list(_predictions(files))
    for each in found:
        print(line(each, fitted=_fitted(each.row, fitted)))
    for name, chosen in _groups(found, fitted):
        print(f"{name}: {errors(chosen)}")
    return 0


def line(found: Prediction, *, fitted: bool) -> str:
    """One run: its degrees, measured and predicted seconds, terms in percent of the predicted step."""
    row, s, measured_s = found.row, found.strategy, found.row.measured_step_s or float("nan")
    shares = {term: part / found.step_time_s for term, part in found.breakdown_s.items()}
    terms = ", ".join(f"{term} {share:.0%}" for term, share in shares.items() if share > LEAST_SHARE)
    degrees = f"tp {s.tp} cp {s.cp} pp {s.pp}x{s.vpp} ep {s.ep} etp {s.etp} mbs {s.micro_batch_size}"
    ratio = f"{found.step_time_s:.2f} / {measured_s:.2f} s = {found.step_time_s / measured_s:.2f}"
    mark = "fitted" if fitted else "judged"
    return (
        f"{mark} {row.id} {row.model} {found.num_devices} x {row.device} {row.precision} {degrees}: {ratio} ({terms})"
    )


def errors(found: Sequence[Prediction]) -> str:
    """Median ratio, median and mean error of some runs."""
    ratios = np.array([each.step_time_s / (each.row.measured_step_s or float("nan")) for each in found])
    off = np.abs(ratios - 1.0)
    median, middle, mean = np.median(ratios), np.median(off), np.mean(off)
    return f"{len(ratios)} runs, median ratio {median:.2f}, median error {middle:.1%}, mean {mean:.1%}"


def _predictions(files: Iterable[Path]) -> Iterable[Prediction]:
    for path in files:
        rows = [row for row in read_truth(path.read_text(encoding="utf-8"), str(path)) if not row.out_of_memory]
        predictions, _ = predict_rows(rows)
        yield from (each for each in predictions if each.experts and each.row.measured_step_s is not None)


def _fitted(row: TruthRow, fitted: FittedRows) -> bool:
    return row.id == FITTED_HOST or fitted.holds(row)


def _groups(found: Sequence[Prediction], fitted: FittedRows) -> Iterable[tuple[str, list[Prediction]]]:
    groups: dict[str, list[Prediction]] = defaultdict(list)
    for each in found:
        part = "fitted" if _fitted(each.row, fitted) else "judged"
        groups[f"{part}, {source_group(each.row.source)}"].append(each)
    for part in ("fitted", "judged"):
        groups[f"{part}, all"] = [
            each for each in found if ("fitted" if _fitted(each.row, fitted) else "judged") == part
        ]
    return ((name, chosen) for name, chosen in groups.items() if chosen)


if __name__ == "__main__":
    sys.exit(main())
