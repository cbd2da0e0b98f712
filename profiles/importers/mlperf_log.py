"""MLPerf training logs: step times of ``:::MLLOG`` lines, what was submitted as facts.

Recognised by ``:::MLLOG {"namespace": ..``.  ``tracked_stats`` with ``train_step_time`` (seconds) is one observation;
its ``samples_count`` or ``step`` says where in the run.  Without it, a training block from ``block_start`` to
``block_stop`` that both count samples is one observation: the mean of ``samples / global batch size`` steps, without
the evaluations between blocks; the first block is left out.  ``throughput`` has no printed unit (samples a second in
some benchmarks, tokens in others): left out unless ``--set throughput_unit=samples``, then ``time = global batch size
/ throughput``.  Devices and strategy are not in the log: ``--set num_devices=512``.  Facts: benchmark, platform,
batch size, accumulation steps, sequence length, run time, status.

Source: mlcommons/logging mlperf_logging/mllog; training_results_v3.0 to v5.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from profiles.importing.environments import Batches, environment_of, finished, given_whole
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.number_cells import json_number, json_whole
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import IterationObservation, Scalar
from profiles.observations.timing import Timing

_LINE = re.compile(r":::MLLOG (\{.*)$")
_MATCH = re.compile(r':::MLLOG \{"namespace":')
_LONGEST = 100_000
_TEXTS = ("submission_benchmark", "submission_platform", "submission_division", "submission_status")
_NUMBERS = ("global_batch_size", "gradient_accumulation_steps", "max_sequence_length", "seed", "num_layers")


def _matches(head: Head) -> bool:
    # With NCCL's messages in between and no step time it is the messages that are worth reading.
    text = head.text
    return bool(_MATCH.search(text)) and ("train_step_time" in text or "NCCL INFO" not in text)


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("mlperf")
    batches = Batches()
    for file in files:
        steps: list[IterationObservation] = []
        facts: dict[str, Scalar] = {}
        starts: dict[str, float] = {}
        blocks = _Blocks()
        for number, line in file.lines():
            match = _LINE.search(line) if ":::MLLOG" in line and len(line) < _LONGEST else None
            if match is None:
                continue
            try:
                event = json.loads(match[1])
                if not isinstance(event, dict) or not isinstance(event.get("key"), str):
                    raise ValueError("the event has no key")
                _take_fact(event, facts, starts)
                blocks.take(event, number)
                step = _step(event, number, facts, options, imported)
                if step is not None:
                    steps.append(step)
            except (ValueError, RecursionError) as error:
                imported.bad(number, f"the event cannot be used: {error}"[:200], "is the line cut off?")
        if not steps:
            steps = blocks.steps(facts.get("global_batch_size") or given_whole(options, "global_batch_size"), imported)
        batch = batches.of(environment_of(options))
        batch.iterations += [_with_facts(step, facts, options) for step in steps]
        for name, value in facts.items():
            imported.facts.setdefault(name, value)
    missing = "the log has no train_step_time, and no two training blocks with their samples and a global batch size"
    hint = "throughput alone is taken with --set throughput_unit=samples, if that is what the benchmark logs"
    return finished(imported, batches, files[0], missing, hint)


class _Blocks:
    """Training blocks: from a block_start to the next block_stop, both with a count of samples."""

    def __init__(self) -> None:
        self._open: tuple[float, int] | None = None
        self._found: list[tuple[float, int, int]] = []

    def take(self, event: dict[str, Any], number: int) -> None:
        """Look at one event.  Raises ValueError."""
        if event["key"] not in ("block_start", "block_stop"):
            return
        metadata = event.get("metadata")
        count = metadata.get("samples_count") if isinstance(metadata, dict) else None
        if count is None:
            self._open = None
            return
        time_ms, samples = json_number(event.get("time_ms")), json_whole(count)
        if event["key"] == "block_start":
            self._open = (time_ms, samples)
        elif self._open is not None:
            (begun_ms, before), self._open = self._open, None
            if samples > before and time_ms > begun_ms:
                self._found.append(((time_ms - begun_ms) * 1e-3, samples - before, number))

    def steps(self, global_batch: Scalar | None, imported: Imported) -> list[IterationObservation]:
        """Mean steps of the blocks that hold whole steps."""
        if not isinstance(global_batch, int) or global_batch < 1 or len(self._found) < 2:
            return []
        imported.skip("first training block: it includes start-up")
        imported.flag("mean-of-blocks", "step times are means over training blocks, from their samples and time stamps")
        found: list[IterationObservation] = []
        for time_s, samples, number in self._found[1:]:
            if samples % global_batch:
                imported.skip("training block of a broken number of steps")
                continue
            count = samples // global_batch
            found.append(IterationObservation(Timing(time_s / count, "mean", count), row=number))
        return found


def _take_fact(event: dict[str, Any], facts: dict[str, Scalar], starts: dict[str, float]) -> None:
    """Keep what one event says of the whole run.  Raises ValueError."""
    key, value = event["key"], event.get("value")
    if key in _TEXTS and isinstance(value, str):
        facts[key] = value[:80]
    elif key in _NUMBERS and value is not None:
        facts[key] = json_whole(value)
    elif key == "run_start":
        starts["run"] = json_number(event.get("time_ms"))
    elif key == "run_stop":
        if "run" in starts:
            facts["run_time_s"] = (json_number(event.get("time_ms")) - starts["run"]) * 1e-3
        metadata = event.get("metadata")
        if isinstance(metadata, dict) and isinstance(metadata.get("status"), str):
            facts["status"] = metadata["status"][:20]


def _step(
    event: dict[str, Any], number: int, facts: dict[str, Scalar], options: ReadOptions, imported: Imported
) -> IterationObservation | None:
    """The step that an event reports; None for other events.  Raises ValueError."""
    value, metadata = event.get("value"), event.get("metadata")
    if event["key"] != "tracked_stats" or not isinstance(value, dict):
        return None
    time_s: float | None = None
    if "train_step_time" in value:
        time_s = json_number(value["train_step_time"])
    elif "throughput" in value:
        batch = facts.get("global_batch_size") or given_whole(options, "global_batch_size")
        rate = json_number(value["throughput"])
        if options.given.get("throughput_unit") != "samples" or not isinstance(batch, int) or rate <= 0:
            imported.skip("throughput in a unit that is not printed")
            return None
        time_s = batch / rate
    if time_s is None:
        return None
    where = metadata if isinstance(metadata, dict) else {}
    detail: dict[str, Scalar] = {}
    for name in ("samples_count", "step", "step_num", "epoch_num"):
        if isinstance(where.get(name), (int, float)) and not isinstance(where.get(name), bool):
            detail[name] = where[name]
    return IterationObservation(Timing(time_s), detail=detail, row=number)


def _with_facts(step: IterationObservation, facts: dict[str, Scalar], options: ReadOptions) -> IterationObservation:
    """The step with what the whole log says."""
    batch, length = facts.get("global_batch_size"), facts.get("max_sequence_length")
    return IterationObservation(
        step.timing,
        model=options.given.get("model", str(facts.get("submission_benchmark", ""))),
        num_devices=given_whole(options, "num_devices"),
        global_batch_size=batch if isinstance(batch, int) and batch > 0 else given_whole(options, "global_batch_size"),
        sequence_length=length if isinstance(length, int) and length > 0 else given_whole(options, "sequence_length"),
        detail=step.detail,
        row=step.row,
    )


FORMAT = Format("mlperf-log", "MLPerf training logs (:::MLLOG)", _matches, _read)
