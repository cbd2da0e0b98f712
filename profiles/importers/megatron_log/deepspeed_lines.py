"""Step times from DeepSpeed's own lines.

Pipeline engine: ``steps: 10 loss: 6.9 iter time (s): 1.234 samples/sec: 51.8``.  Other engines: ``epoch=0/
micro_step=4/global_step=2, RunningAvgSamplesPerSec=.., CurrSamplesPerSec=3.7, MemAllocated=17.8GB,
MaxMemAllocated=40.3GB``: the step took train_batch_size / CurrSamplesPerSec (its ThroughputTimer divides the whole
batch by the time since the last global step); GB is 2^30 bytes there.  Under Megatron-DeepSpeed Megatron's lines
report the same steps and win.
"""

from __future__ import annotations

import re

from profiles.importers.megatron_log.fields import positive_whole
from profiles.importers.megatron_log.run import REPEATED, Run
from profiles.importing.imported import Imported
from profiles.importing.log_lines import LogLine
from profiles.importing.number_cells import finite_number, whole_number
from profiles.observations.records import IterationObservation

KIND = "deepspeed"
PIPELINE = re.compile(r"\bsteps?: +(\d{1,12})(?: / +\d+)? loss: .*?iter time \(s\): (\S+) samples/sec: (\S+)")
THROUGHPUT = re.compile(
    r"global_step=(\d{1,12}), RunningAvgSamplesPerSec=[^,]*, CurrSamplesPerSec=([^,\s]+)"
    r"(?:, MemAllocated=([\d.]+)GB, MaxMemAllocated=([\d.]+)GB)?"
)


def iteration_of(text: str) -> int | None:
    """The step that the line reports; None when it is another line."""
    match = PIPELINE.search(text) or THROUGHPUT.search(text)
    return int(match[1]) if match else None


def apply_configuration(arguments: dict[str, str], run: Run) -> None:
    """Take what DeepSpeed's printed configuration says where Megatron's arguments do not."""
    names = {"train_batch_size": "global_batch_size", "train_micro_batch_size_per_gpu": "micro_batch_size"}
    for name, attribute in names.items():
        text = arguments.get(name, "")
        if getattr(run, attribute) is None and positive_whole(text) is not None:
            setattr(run, attribute, positive_whole(text))
    if arguments.get("zero_optimization_stage") in ("0", "1", "2", "3"):
        run.strategy.setdefault("zero_stage", whole_number(arguments["zero_optimization_stage"]))


def read_iteration(line: LogLine, run: Run, imported: Imported) -> None:
    """Add the reading of a DeepSpeed line to the run."""
    pipeline, throughput = PIPELINE.search(line.text), THROUGHPUT.search(line.text)
    match = pipeline or throughput
    if match is None:
        return
    step = int(match[1])
    if run.is_repeated(KIND, step):
        imported.skip(REPEATED)
        return
    try:
        timing = None
        if pipeline:
            timing = run.mean_of(finite_number(pipeline[2]), KIND, step)
        elif (batch := run.batch()) is not None:
            timing = run.mean_of(batch / finite_number(match[2]), KIND, step)
        sizes = [round(finite_number(text) * 2**30) for text in match.groups()[2:4] if text] if throughput else []
    except (ValueError, ZeroDivisionError) as error:
        imported.bad(line.number, str(error), "was the line cut off?")
        return
    if timing is None and not sizes:
        imported.skip("samples a second without a batch size (--set global_batch_size=..)")
        return
    run.framework = run.framework or KIND
    run.iterations_seen[KIND] = step
    reading = IterationObservation(
        timing,
        iteration=step,
        rank=line.rank,
        allocated_bytes=sizes[0] if sizes else None,
        peak_allocated_bytes=sizes[1] if sizes else None,
        row=line.number,
    )
    (run.memory if timing is None else run.timed).append(reading)
