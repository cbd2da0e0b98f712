"""Training logs: Megatron-LM and its relatives, NeMo, nanotron, torchtitan, DeepSpeed, MaxText.

Recognised by an iteration line with numbers in it, a memory report, or a printed block of Megatron arguments.  Each
dialect is one file here.  One run gives one batch (runs on equal machines share it); the first time of a run is left
out because it includes start-up.  Prefixes of torchrun, srun and mpirun, documents around the log, and lines glued
together by several processes are understood.  Host names, paths and run names are never kept.

Source of the formats: the printing code of NVIDIA/Megatron-LM (training.py, report_memory), Megatron-DeepSpeed,
NVIDIA-NeMo, huggingface/nanotron, pytorch/torchtitan (metrics.py), microsoft/DeepSpeed (timer.py, pipe/engine.py),
AI-Hypercomputer/maxtext (metric_logger.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from profiles.errors import DocumentInvalid
from profiles.importers.megatron_log import (
    arguments,
    deepspeed_lines,
    maxtext_lines,
    megatron_lines,
    memory_lines,
    nanotron_lines,
    nemo_lines,
    titan_lines,
)
from profiles.importers.megatron_log.run import Run
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.log_lines import LogLine, clean_line, log_lines
from profiles.importing.source_file import Head, SourceFile

_Dialect = tuple[str, Callable[[str], int | None], Callable[[LogLine, Run, Imported], None]]
_DIALECTS: tuple[_Dialect, ...] = (
    (megatron_lines.KIND, megatron_lines.iteration_of, megatron_lines.read_iteration),
    (nemo_lines.KIND, nemo_lines.iteration_of, nemo_lines.read_iteration),
    (nanotron_lines.KIND, nanotron_lines.iteration_of, nanotron_lines.read_iteration),
    (titan_lines.KIND, titan_lines.iteration_of, titan_lines.read_iteration),
    (deepspeed_lines.KIND, deepspeed_lines.iteration_of, deepspeed_lines.read_iteration),
    (maxtext_lines.KIND, maxtext_lines.iteration_of, maxtext_lines.read_iteration),
)
_LIBRARY = re.compile(r"NCCL version (\d[\w.+-]{2,40})")
_ARGUMENT_HINT = re.compile(r"\b(?:tensor_model_parallel_size|pipeline_model_parallel_size) ?\.{3,} ?\d")
_FORKS = (("MindSpeed", "mindspeed"), ("Megatron-Bridge", "megatron-bridge"), ("megatron.bridge", "megatron-bridge"))
_FACTS = re.compile(
    r"NCCL version|world size|Theoretical|MindSpeed|[Mm]egatron.[Bb]ridge|Trainer is|device mesh|capacity: |"
    r"Config param (?:global|max_t)"
)
"""A line without any of these says nothing about the run as a whole."""
_REPORTED_TWICE = "DeepSpeed's report of a step that Megatron reports too"
_LONGEST = 20_000
"""Characters of a line that are looked at: every pattern here belongs to a shorter one."""


def _matches(head: Head) -> bool:
    return any(_says_something(line) for line in head.text.splitlines() if len(line) < _LONGEST)


def _says_something(raw: str) -> bool:
    if ":" not in raw and "..." not in raw and "=" not in raw:
        return False
    text = clean_line(0, raw).text
    if _ARGUMENT_HINT.search(text) or memory_lines.REPORT.search(text):
        return True
    match = megatron_lines.LINE.search(text)
    if match:
        return re.search(r"elapsed time per iteration \((?:ms|s)\): *\d", text) is not None
    return any(iteration_of(text) is not None for _, iteration_of, _ in _DIALECTS[1:])


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("training log")
    batches: list[Batch] = []
    for file in files:
        reader = _Reader(imported, options)
        for line in log_lines(file):
            reader.take(line if len(line.text) <= _LONGEST else LogLine(line.number, line.text[:_LONGEST], line.rank))
        batches += reader.finish()
    for batch in batches:
        same = next((each for each in imported.batches if each.environment == batch.environment), None)
        if same is None:
            imported.batches.append(batch)
        else:
            same.iterations.extend(batch.iterations)
    if not imported.num_observations:
        raise DocumentInvalid(
            "the log has no usable iteration time, memory report or failure"
            + (f" ({imported.bad_rows[0].where}: {imported.bad_rows[0].what})" if imported.bad_rows else ""),
            where=files[0].where if files else None,
            hint="a log of a run that reached its first logged iteration is needed",
        )
    imported.tool = imported.batches[0].environment.framework or imported.tool
    return imported


class _Reader:
    """The state while one file is read."""

    def __init__(self, imported: Imported, options: ReadOptions) -> None:
        self.imported = imported
        self.run = Run(options)
        self.arguments: dict[str, str] | None = None
        self.configuration: dict[str, str] = {}
        self.finished: list[Batch] = []

    def take(self, line: LogLine) -> None:
        """Read one line."""
        text = line.text
        is_reading = ("iteration" in text or "step" in text) and self._take_dialects(line)
        # Lines of several processes may be glued together: a memory report may stand behind.
        if is_reading and "memory" not in text:
            return
        if "memory" in text and memory_lines.read_memory(line, self.run, self.imported):
            return
        if "Memory usage" in text and nanotron_lines.read_memory(line, self.run, self.imported):
            return
        if "out of memory" in text and memory_lines.read_out_of_memory(line, self.run):
            return
        if ("..." in text or "arguments" in text) and self._take_arguments(text):
            return
        if _FACTS.search(text):
            self._take_facts(text)

    def _take_dialects(self, line: LogLine) -> bool:
        """Read the line in the dialect to which it belongs; False when it is of none."""
        for kind, iteration_of, read_iteration in _DIALECTS:
            iteration = iteration_of(line.text)
            if iteration is not None:
                self._take_iteration(kind, iteration, read_iteration, line)
                return True
        return False

    def finish(self) -> list[Batch]:
        """All runs of the file."""
        self._end_run()
        return self.finished

    def _take_iteration(
        self, kind: str, iteration: int, read_iteration: Callable[[LogLine, Run, Imported], None], line: LogLine
    ) -> None:
        if kind == deepspeed_lines.KIND and megatron_lines.KIND in self.run.iterations_seen:
            self.imported.skip(_REPORTED_TWICE)
            return
        if kind == megatron_lines.KIND and set(self.run.iterations_seen) == {deepspeed_lines.KIND}:
            self._drop_deepspeed()
        if self.run.starts_again(kind, iteration):
            self._end_run()
        deepspeed_lines.apply_configuration(self.configuration, self.run)
        read_iteration(line, self.run, self.imported)

    def _drop_deepspeed(self) -> None:
        """Forget DeepSpeed's lines: the first of them stand before Megatron's first."""
        self.imported.skip(_REPORTED_TWICE, len(self.run.timed) + len(self.run.memory))
        self.run.timed.clear()
        self.run.memory.clear()
        self.run.iterations_seen.clear()
        self.run.framework = ""

    def _take_arguments(self, text: str) -> bool:
        if arguments.BEGINS.search(text) and "end of" not in text:
            self._end_run()
            self.arguments = {}
            return True
        if arguments.ENDS.search(text):
            if self.arguments is not None:
                arguments.apply_arguments(self.arguments, self.run)
            self.arguments = None
            return True
        if "..." not in text:
            return False
        into = self.configuration if self.arguments is None else self.arguments
        return len(into) < 4000 and arguments.read_argument(text, into)

    def _take_facts(self, text: str) -> None:
        if arguments.read_summary(text, self.run) or memory_lines.read_theory(text, self.run):
            return
        if titan_lines.read_facts(text, self.run) or maxtext_lines.read_facts(text, self.run):
            return
        if match := _LIBRARY.search(text):
            self.run.library_version = match[1]
        for word, name in _FORKS:
            if word in text:
                self.run.framework = name

    def _end_run(self) -> None:
        if self.arguments:
            # The log ends, or a run begins, inside the block: what was printed counts.
            arguments.apply_arguments(self.arguments, self.run)
        self.arguments = None
        batch = self.run.finish(self.imported)
        if batch is None:
            # What stands between two blocks without a reading ("using world size") belongs to the second.
            return
        self.finished.append(batch)
        self.configuration = {}
        kept = self.run
        self.run = Run(
            kept.options, kept.framework, device_reported=kept.device_reported, library_version=kept.library_version
        )


FORMAT = Format(
    "megatron-log", "training logs (Megatron, NeMo, nanotron, torchtitan, DeepSpeed, MaxText)", _matches, _read, "files"
)
