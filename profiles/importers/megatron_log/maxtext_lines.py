"""Step times from MaxText's line.

``completed step: 10, seconds: 3.214, TFLOP/s/device: 180.112, Tokens/s/device: 5012.3, total_weights: 65536, loss: ..``
The time is that of the one step.  Before the first step MaxText prints its configuration, one ``Config param NAME:
VALUE`` a line, of which the batch and the sequence are kept.
Source of the formats: AI-Hypercomputer/maxtext, metric_logger.py (log_training_metrics), pyconfig.py.
"""

from __future__ import annotations

import re

from profiles.importers.megatron_log.fields import first_number, is_number, positive_whole
from profiles.importers.megatron_log.run import REPEATED, Run
from profiles.importing.imported import Imported
from profiles.importing.log_lines import LogLine
from profiles.observations.records import IterationObservation
from profiles.observations.timing import Timing

KIND = "maxtext"
LINE = re.compile(r"\bcompleted step: (\d{1,12}), seconds: ([^,\s]{1,40})(?:, TFLOP/s(?:/device)?: ([^,\s]{1,40}))?")
_PARAMETER = re.compile(r"Config param (global_batch_size_to_train_on|max_target_length): (\d{1,12})\b")


def iteration_of(text: str) -> int | None:
    """The step that the line reports; None when it is another line."""
    match = LINE.search(text)
    return int(match[1]) if match else None


def read_facts(text: str, run: Run) -> bool:
    """Take batch and sequence from the printed configuration; False for other lines."""
    match = _PARAMETER.search(text)
    if match is None:
        return False
    value = positive_whole(match[2])
    if match[1] == "max_target_length":
        run.sequence_length = value or run.sequence_length
    else:
        run.global_batch_size = value or run.global_batch_size
    return True


def read_iteration(line: LogLine, run: Run, imported: Imported) -> None:
    """Add the reading of a step's line to the run; broken ones are reported as bad rows."""
    match = LINE.search(line.text)
    if match is None:
        return
    step = int(match[1])
    if run.is_repeated(KIND, step):
        imported.skip(REPEATED)
        return
    try:
        timing = Timing(first_number(match[2]), "single", 1)
    except ValueError as error:
        imported.bad(line.number, str(error), "was the line cut off or mixed with another?")
        return
    run.framework = run.framework or KIND
    run.iterations_seen[KIND] = step
    flops = first_number(match[3]) * 1e12 if match[3] and is_number(match[3]) else 0.0
    run.timed.append(
        IterationObservation(
            timing,
            iteration=step,
            rank=line.rank,
            reported_flops_per_s_per_device=flops or None,
            row=line.number,
        )
    )
