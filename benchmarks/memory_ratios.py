"""Measured over predicted peak memory, by back-end.  ``python -m benchmarks.memory_ratios``.

    python -m benchmarks.memory_ratios TRUTH.csv... [--check]

fits ``planner/predict/memory/measured_ratios.json`` to the rows of
``planner/evidence/accuracy/rows_used_for_fitting.txt`` and to no others (``--check``: exit code 1 if the file is not
what they give); ``meshwright accuracy`` judges it by the rest.  It must run again after every change of the memory
model.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from planner.evidence.accuracy.fitted_rows import committed_fitted_rows
from planner.evidence.accuracy.memory_ratios import fitted_ratios, observation
from planner.evidence.runs.prediction import predict_rows
from planner.predict.memory.fit_chance import COMMITTED, MeasuredRatios

SAID = (
    "measured over predicted peak memory, fitted by python -m benchmarks.memory_ratios to the fit part"
    " (planner/evidence/accuracy/rows_used_for_fitting.txt) of the published runs; docs/decisions/0036 and 0087"
)
SAME_AS = {"megatron-bridge": "megatron", "mindspeed": "megatron", "nemo": "megatron", "unrestricted": "megatron"}
"""They run Megatron-Core (its states, its kept activations, PyTorch's allocator), or are predicted with its memory as
the neutral physics is: their sources and Megatron's speak for all of them."""


def main() -> int:
    """Write the file, or with ``--check`` say whether it is up to date."""
    from planner.cli.commands.accuracy import read_truth_files

    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory_ratios")
    parser.add_argument("truth", nargs="+", type=Path)
    parser.add_argument("--check", action="store_true")
    asked = parser.parse_args()
    fitting = committed_fitted_rows()
    rows, _ = read_truth_files(asked.truth)
    predictions, _ = predict_rows(row for row in rows if fitting.holds(row))
    seen = [found for each in predictions if (found := observation(each)) is not None]
    text = (
        MeasuredRatios(said=SAID, ratios=fitted_ratios(seen, SAME_AS), same_as=SAME_AS).model_dump_json(indent=2) + "\n"
    )
    if asked.check:
        fresh = COMMITTED.is_file() and COMMITTED.read_text(encoding="utf-8") == text
        print("up to date" if fresh else "stale")
        return 0 if fresh else 1
    COMMITTED.write_text(text, encoding="utf-8")
    print(f"written: {COMMITTED} ({len(seen)} rows)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
