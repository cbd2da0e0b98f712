"""Iteration times from NeMo's lines.

NeMo 2: ``Training epoch 0, iteration 20/99 | lr: .. | global_batch_size: 512 | global_step: 20 | peak_memory_usage:
63437766656 | memory_allocated: .. | reduced_train_loss: .. | train_step_timing in s: 6.243 | consumed_samples: ..``
NeMo 1 (progress bar): ``Epoch 0: ... [.., reduced_train_loss=.., global_step=19.0, consumed_samples=5120.0,
train_step_timing in s=3.12]``.  Times in seconds; memory in bytes.  ``global_step`` counts from 0 in both.
"""

from __future__ import annotations

import re

from profiles.importers.megatron_log.fields import fields_of, first_number, positive_whole
from profiles.importers.megatron_log.run import REPEATED, Run
from profiles.importing.imported import Imported
from profiles.importing.log_lines import LogLine
from profiles.observations.records import IterationObservation
from profiles.observations.timing import Timing

KIND = "nemo"
LINE = re.compile(r"Training epoch \d+, iteration (\d{1,12})/\d{1,12} *\|")
BAR = re.compile(r"train_step_timing in s=([^,\]]+)")
_BAR_STEP = re.compile(r"global_step=(\d{1,12})(?:\.0)?\b")


def iteration_of(text: str) -> int | None:
    """The step that the line reports, counted from 1; None when it is another line."""
    match = LINE.search(text)
    if match:
        return int(match[1]) + 1
    step = _BAR_STEP.search(text) if BAR.search(text) else None
    return int(step[1]) + 1 if step else None


def read_iteration(line: LogLine, run: Run, imported: Imported) -> None:
    """Add the reading of a NeMo line to the run."""
    iteration = iteration_of(line.text)
    if iteration is None:
        return
    if run.is_repeated(KIND, iteration):
        imported.skip(REPEATED)
        return
    match, bar = LINE.search(line.text), BAR.search(line.text)
    parts = fields_of(line.text[match.end() :]) if match else {}
    text = parts.get("train_step_timing in s", "") if match else (bar[1] if bar else "")
    if not text:
        imported.skip("NeMo line without a step time")
        return
    try:
        timing = Timing(first_number(text), "single", 1)
    except ValueError as error:
        imported.bad(line.number, f"train_step_timing: {error}", "was the line cut off?")
        return
    run.framework = run.framework or "nemo"
    run.iterations_seen[KIND] = iteration
    tflops = parts.get("TFLOPS_per_GPU", "")
    run.timed.append(
        IterationObservation(
            timing,
            iteration=iteration,
            rank=line.rank,
            global_batch_size=positive_whole(parts.get("global_batch_size", "")),
            peak_allocated_bytes=positive_whole(parts.get("peak_memory_usage", "")),
            allocated_bytes=positive_whole(parts.get("memory_allocated", "")),
            reported_flops_per_s_per_device=_flops(tflops),
            row=line.number,
        )
    )


def _flops(text: str) -> float | None:
    try:
        return first_number(text) * 1e12 if text else None
    except ValueError:
        return None
