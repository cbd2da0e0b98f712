"""Iteration times from nanotron's line.

``[INFO|DP=0|PP=0|TP=0]: iteration: 1 / 15 | consumed_tokens: 512 | elapsed_time_per_iteration_ms: 4.71K |
tokens_per_sec: 109 | global_batch_size: 2 | model_tflops_per_gpu: 1.87e-05 | .. | cuda_max_memory_reserved: 520M``
Newer: ``time_per_iteration_ms: 8.79K``, and ``global_batch_size: 1.6M`` counts tokens (it is tokens_per_sec x time).
Numbers have three digits and a decimal suffix (K, M, G, T): above 999 they are rounded, flag ``rounded``.  The time
is the time of that step.  `` Memory usage: 64.15MiB. Peak allocated 309.29MiB. Peak reserved: 496.00MiB`` is exact.
"""

from __future__ import annotations

import re

from profiles.importers.megatron_log.fields import bytes_of, fields_of, human_number, positive_whole
from profiles.importers.megatron_log.run import REPEATED, Run
from profiles.importing.imported import Imported
from profiles.importing.log_lines import LogLine
from profiles.observations.records import IterationObservation
from profiles.observations.timing import Timing

KIND = "nanotron"
LINE = re.compile(r"\biteration: (\d{1,12}) / \d{1,12} \| (?=.*\b(?:elapsed_)?time_per_iteration_ms: )")
MEMORY = re.compile(r"Memory usage: (\S+)\. Peak allocated:? (\S+)\. Peak reserved: (\S+)")


def iteration_of(text: str) -> int | None:
    """The iteration that the line reports; None when it is another line."""
    match = LINE.search(text)
    return int(match[1]) if match else None


def read_iteration(line: LogLine, run: Run, imported: Imported) -> None:
    """Add the reading of a nanotron line to the run."""
    match = LINE.search(line.text)
    if match is None:
        return
    iteration = int(match[1])
    if run.is_repeated(KIND, iteration):
        imported.skip(REPEATED)
        return
    parts = fields_of(line.text[match.end() :])
    try:
        time_ms = parts.get("elapsed_time_per_iteration_ms") or parts.get("time_per_iteration_ms", "")
        timing = Timing(human_number(time_ms) * 1e-3, "single", 1)
        samples, tokens = _batch(parts, timing.time_s)
        tflops = human_number(parts["model_tflops_per_gpu"]) if "model_tflops_per_gpu" in parts else 0.0
        reserved = human_number(parts["cuda_max_memory_reserved"]) if "cuda_max_memory_reserved" in parts else 0.0
    except ValueError as error:
        imported.bad(line.number, str(error), "was the line cut off?")
        return
    run.framework = run.framework or "nanotron"
    run.iterations_seen[KIND] = iteration
    if not any(flag.code == "rounded" for flag in imported.flags):
        imported.flag("rounded", "nanotron prints three digits: times above 999 ms are rounded to 0.5 %", line.number)
    run.timed.append(
        IterationObservation(
            timing,
            iteration=iteration,
            rank=line.rank,
            global_batch_size=samples,
            reported_flops_per_s_per_device=tflops * 1e12 or None,
            peak_reserved_bytes=round(reserved) or None,
            detail={} if tokens is None else {"tokens_per_iteration": tokens},
            row=line.number,
        )
    )


def _batch(parts: dict[str, str], time_s: float) -> tuple[int | None, int | None]:
    """Samples and tokens of an iteration; the line gives one of them.  Raises ValueError."""
    size = parts.get("global_batch_size", "")
    if not size:
        return None, None
    amount = human_number(size)
    if "tokens_per_sec" in parts and 0.95 < human_number(parts["tokens_per_sec"]) * time_s / max(amount, 1.0) < 1.05:
        return None, round(amount) or None
    # Three digits of a larger number would be a wrong batch.
    return (positive_whole(size) if size.isdigit() else None), None


def read_memory(line: LogLine, run: Run, imported: Imported) -> bool:
    """Add nanotron's memory line to the run; False when it is another line."""
    match = MEMORY.search(line.text)
    if match is None:
        return False
    try:
        used, allocated, reserved = (bytes_of(match[index]) for index in (1, 2, 3))
    except ValueError as error:
        imported.bad(line.number, f"memory report: {error}", "was the line cut off?")
        return True
    run.memory.append(
        IterationObservation(
            None,
            iteration=run.iterations_seen.get(KIND),
            rank=line.rank,
            allocated_bytes=used,
            peak_allocated_bytes=allocated,
            peak_reserved_bytes=reserved,
            row=line.number,
        )
    )
    return True
