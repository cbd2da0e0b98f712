"""Iteration times from Megatron's own line: Megatron-LM, -DeepSpeed, -Bridge, MindSpeed, Primus, forks.

    iteration       20/  500000 | consumed samples: 20480 | elapsed time per iteration (ms): 12137.8 |
    throughput per GPU (TFLOP/s/GPU): 872.5 | global batch size: 1024 | lm loss: 1.06E+01 | ...

The time is the mean since the line before it, in the unit that the line prints ((ms), older BigScience forks (s)).
``TFLOPs`` (Megatron-DeepSpeed) is per device too.  Lines of several processes may be glued together.
"""

from __future__ import annotations

import re

from profiles.importers.megatron_log.fields import fields_of, first_number, is_number, positive_whole
from profiles.importers.megatron_log.run import REPEATED, Run
from profiles.importing.imported import Imported
from profiles.importing.log_lines import LogLine
from profiles.observations.records import IterationObservation, Scalar

KIND = "megatron"
LINE = re.compile(
    r"\biteration:? +(\d{1,12})(?: ?/ *\d{1,12})? *\| *(?=consumed |elapsed |learning |throughput |\.\.\.)"
)
_TIME = re.compile(r"elapsed time per iteration *\(([^)]*)\) *:\s*([^|\s]*)")
_UNIT_S = {"ms": 1e-3, "s": 1.0}
_THROUGHPUTS = ("throughput per GPU (TFLOP/s/GPU)", "TFLOPs", "throughput per NPU (TFLOP/s/NPU)")
_COUNTS = {"number of skipped iterations": "skipped_iterations", "number of nan iterations": "nan_iterations"}


def iteration_of(text: str) -> int | None:
    """The iteration that the line reports; None when it is another line."""
    match = LINE.search(text)
    return int(match[1]) if match else None


def read_iteration(line: LogLine, run: Run, imported: Imported) -> None:
    """Add the reading of an iteration line to the run; broken ones are reported as bad rows."""
    match = LINE.search(line.text)
    if match is None:
        return
    iteration = int(match[1])
    time = _TIME.search(line.text)
    if time is None or time[1] not in _UNIT_S:
        what = "no elapsed time" if time is None else f"a time in '{time[1][:20]}', a unit that is not known"
        imported.bad(line.number, f"the iteration line has {what}", "was the line cut off or mixed with another?")
        return
    if run.is_repeated(KIND, iteration):
        imported.skip(REPEATED)
        return
    parts = fields_of(line.text[match.end() :])
    try:
        timing = run.mean_of(first_number(time[2]) * _UNIT_S[time[1]], KIND, iteration)
        flops = next((first_number(parts[name]) * 1e12 for name in _THROUGHPUTS if name in parts), None)
    except ValueError as error:
        imported.bad(line.number, str(error), "was the line cut off or mixed with another?")
        return
    run.iterations_seen[KIND] = iteration
    run.framework = run.framework or ("megatron-deepspeed" if "consumed tokens" in parts else "megatron-lm")
    run.timed.append(
        IterationObservation(
            timing,
            iteration=iteration,
            rank=line.rank,
            global_batch_size=positive_whole(parts.get("global batch size", "")),
            sequence_length=positive_whole(parts.get("actual seqlen", parts.get("curriculum seqlen", ""))),
            reported_flops_per_s_per_device=flops if flops is not None and flops > 0 else None,
            detail=_detail(parts),
            row=line.number,
        )
    )


def _detail(parts: dict[str, str]) -> dict[str, Scalar]:
    """Loss and trouble of the iteration."""
    found: dict[str, Scalar] = {}
    loss = parts.get("lm loss", "")
    if loss and is_number(loss):
        found["lm_loss"] = first_number(loss)
    elif loss[:3].lower() in ("nan", "inf"):
        found["loss_not_finite"] = True
    for name, key in _COUNTS.items():
        count = positive_whole(parts.get(name, ""))
        if count is not None:
            found[key] = count
    return found
