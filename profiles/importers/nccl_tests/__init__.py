"""nccl-tests and rccl-tests: the text that ``all_reduce_perf`` and its siblings print (2.0 to 2.19, rccl-tests).

Recognised by the header of its table (``size count type ... time algbw busbw``) or its ``# nThread ... minBytes``
line, behind launcher prefixes, in documents, and between NCCL INFO lines.  Sizes are already full logical tensors
(all_gather: the output; reduce_scatter: the input; all_to_all: what one rank sends); times are in us (2017/18: ms, see
``columns``); GB/s are 10^9.  A file may hold many runs of several collectives.  Traps: the collective is rarely named
(``operation``); the device list may contradict the bandwidths (``group``); versions differ in their columns
(``columns``, ``rows``).
Source: NVIDIA/nccl-tests and ROCm/rccl-tests, src/common.cu, src/util.cu, doc/PERFORMANCE.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profiles.errors import DocumentInvalid
from profiles.importers.nccl_tests.consistency import check_consistency
from profiles.importers.nccl_tests.group import group_of, listed
from profiles.importers.nccl_tests.header import Versions
from profiles.importers.nccl_tests.observations import (
    add_rows,
    environment_of_run,
    facts_of_run,
    figures,
    setting_of,
)
from profiles.importers.nccl_tests.operation import Named, evidence_of, named_operation
from profiles.importers.nccl_tests.runs import Run, Runs
from profiles.importing.collective_names import KNOWN, exact_name
from profiles.importing.environments import Batches, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.log_lines import log_lines
from profiles.importing.redaction import Redactor
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import Scalar

_HEADER = re.compile(
    r"^[^\n]{0,120}\b(?:size[ \t|]+count|bytes[ \t|]+N)[ \t|]+type\b[^\n]{0,120}"
    r"\b(?:cpu)?time[ \t|]+algbw[ \t|]+busbw\b",
    re.MULTILINE,
)
_SETTINGS = re.compile(r"# nThreads?:? \d+ nGpus:? \d+ (?:nRanks:? \d+ )?minBytes:? \d+ maxBytes:? \d+")
_MOST_LISTED_RUNS = 50


def matches(head: Head) -> bool:
    """Whether the text holds the header of a table or the line of settings above it."""
    return bool(head.text) and bool(_HEADER.search(head.text) or _SETTINGS.search(head.text))


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """All runs of one log.  Raises DocumentInvalid when it holds no row that can be used."""
    file = files[0]
    runs = Runs()
    runs.read(log_lines(file))
    runs.finish()
    rccl = runs.versions.library == "rccl"
    imported = Imported("rccl-tests" if rccl else "nccl-tests", runs.versions.tests)
    cleaner = Redactor.knowing(runs.hosts)
    batches = collect(runs.found, runs.versions, imported, options, file.name)
    for index, run in enumerate(runs.found[:_MOST_LISTED_RUNS], start=1):
        if run.written_switches:
            imported.facts[f"run_{index}_switches"] = cleaner.clean(run.written_switches)
    return finished(imported, batches, file, "there is no row of results", "give the whole output of the test program")


def collect(runs: list[Run], versions: Versions, imported: Imported, options: ReadOptions, file_name: str) -> Batches:
    """Observations, flags and facts of runs, whichever dialect they were read from."""
    batches = Batches()
    for index, run in enumerate(runs, start=1):
        for line, what in run.bad:
            imported.bad(line, what)
        if not exact_name(run.test or run.command):
            check_consistency(run, imported)
        named = _named(run, options, file_name, imported) if run.rows else None
        if named is None:
            continue
        facts = _collect_run(run, named, versions, imported, options, batches)
        if index <= _MOST_LISTED_RUNS:
            imported.facts.update({f"run_{index}_{name}": value for name, value in facts.items()})
    imported.facts.update({"num_runs": len(runs), **figures(runs)})
    return batches


def _named(run: Run, options: ReadOptions, file_name: str, imported: Imported) -> Named | None:
    """The collective of a run; None, with the reason reported, for a run that cannot be used."""
    if run.columns is not None and run.columns.cpu_time:
        imported.skip("processor time of the launch (-C), not the time of the collective", len(run.rows))
        imported.flag("cpu-time", "the table holds processor times (-C); run the test without -C", run.first_line)
        return None
    try:
        named = named_operation(run, evidence_of(run), file_name, options.given.get("operation"))
    except ValueError as error:
        raise DocumentInvalid(f"'{error}' is no collective", where="--set operation", hint=f"known: {KNOWN}") from None
    if named is None:
        hint = f"name it with --set operation=... ({KNOWN})"
        imported.bad(run.first_line, f"nothing tells which collective these {len(run.rows)} rows measured", hint)
    return named


def _collect_run(
    run: Run, named: Named, versions: Versions, imported: Imported, options: ReadOptions, batches: Batches
) -> dict[str, Scalar]:
    """Add the observations of one run and return its facts."""
    evidence = evidence_of(run)
    _flag_run(run, named, imported)
    devices = listed(run)
    group = group_of(run, named.operation, evidence, devices, options, imported)
    batch = batches.of(environment_of_run(run, versions, devices, group, options))
    add_rows(run, setting_of(run, named, group), batch, imported)
    if devices is not None and devices.complete and devices.num_devices < devices.num_ranks:
        what = f"{devices.num_ranks} ranks on {devices.num_devices} devices: shared, or several hosts have one name"
        imported.flag("shared-devices", what, run.first_line)
    return {**figures([run]), **facts_of_run(run, evidence, named, group)}


def _flag_run(run: Run, named: Named, imported: Imported) -> None:
    if named.source in ("file name", "bandwidths"):
        what = f"nothing in the text names the collective; {named.operation} follows from the {named.source}"
        imported.flag("operation-inferred", what, run.first_line)
    if run.out_of_bounds:
        what = f"the tool found {run.out_of_bounds} values out of bounds: the results of this run are wrong"
        imported.flag("out-of-bounds", what, run.first_line)
    if len({rank.name for rank in run.ranks if rank.name}) > 1:
        imported.flag("mixed-devices", "the ranks are on different devices", run.first_line)


FORMAT = Format("nccl-tests", "nccl-tests / rccl-tests text", matches, read)
