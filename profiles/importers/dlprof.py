"""DLProf (deprecated 2022): its CSV reports and the database ``dlprof_dldb.sqlite``.

CSV: the first line is the title (``Kernel Report``, ``Op Type Report``, ...), the second the header.  Read are rows
that have a kernel or operation and a mean GPU time, or a total with a count; units stand in the header as ``(ns)``.
``Op Type`` and ``Detail`` reports sum the same kernels in another order, so one report is read at a time.
Database: views for its viewer, of which ``view_iteration_kernels`` (durations in ns), ``view_iterations_profiled`` and
``view_gpu_devices`` are read.
Written from public programs that read or write these files; no real file was at hand.
Source: NVIDIA DLProf user guide 21.11 (report names).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from profiles.errors import DocumentInvalid
from profiles.importing.csv_rows import CsvRow, head_rows, open_csv
from profiles.importing.environments import environment_of
from profiles.importing.foreign_database import Database
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.kernel_groups import KernelGroups
from profiles.importing.kernel_names import kernel_class
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import IterationObservation, OperatorObservation
from profiles.observations.timing import Timing

_MAGIC = b"SQLite format 3\0"
_VIEWS = (b"view_iteration_kernels", b"view_op_nodes")
_TITLE = re.compile(r"(?:Kernel|Tensor Core|Detail(?:ed)?|Op Type|Iteration|Group Node|Summary|Expert Systems?) Report")
_NAMES = ("kernel name", "op name", "op type")
_COUNTS = re.compile(r"(?:num|no|number of|#)?\.? ?(?:calls|invocations|instances|count)|total kernel count")
_TIME = re.compile(r"(?P<which>total|avg\.?|average|mean|min|max)\.? gpu time \((?P<unit>ns|us|ms|s)\)")
_PER_SECOND = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}
_NANOSECONDS_PER_S = 1e9
_LONGEST_NAME = 400
_MAX_ITERATIONS = 1_000_000


def matches(head: Head) -> bool:
    """Whether it is the database, or a CSV that begins with the title of a report."""
    if head.raw.startswith(_MAGIC):
        return any(view in head.raw for view in _VIEWS)
    rows = head_rows(head, limit=2)
    return len(rows) == 2 and bool(_TITLE.fullmatch(rows[0][0])) and not any(rows[0][1:]) and len(rows[1]) > 2


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """One report or database.  Raises DocumentInvalid where it has no GPU times."""
    file = files[0]
    imported = Imported(tool="dlprof")
    batch = Batch(environment_of(options))
    if file.head().raw.startswith(_MAGIC):
        with Database(file, views=True) as database:
            batch.environment = environment_of(options, _device(database))
            _read_kernels(database, batch, imported)
            _read_iterations(database, batch, imported)
    else:
        _read_report(file, batch, imported)
    if not batch.num_observations:
        found = imported.bad_rows[0].what if imported.bad_rows else "no kernel or operation has a GPU time"
        hint = "give dlprof_kernel.csv, or better the nsys export that DLProf made: nsys_profile.sqlite"
        raise DocumentInvalid(f"nothing to import: {found}", where=file.where, hint=hint)
    if not batch.environment.device:
        imported.flag("device-unknown", "the file does not name the device; give it with --set device=NAME")
    imported.batches = [batch]
    return imported


def _read_report(file: SourceFile, batch: Batch, imported: Imported) -> None:
    table = open_csv(file, is_header=lambda names: not _TITLE.fullmatch(names[0]) and len(names) > 2)
    plain = {name.casefold(): name for name in table.header}
    name = next((plain[each] for each in _NAMES if each in plain), "")
    count = next((plain[each] for each in plain if _COUNTS.fullmatch(each)), "")
    times: dict[str, tuple[str, float]] = {}
    for each, original in plain.items():
        match = _TIME.fullmatch(each)
        if match:
            which = {"avg": "mean", "average": "mean"}.get(match["which"].rstrip("."), match["which"])
            times[which] = (original, _PER_SECOND[match["unit"]])
    if not name or not ("mean" in times or ("total" in times and count)):
        raise DocumentInvalid(
            "the report has no mean GPU time, and no total with a count",
            where=f"{file.where}:{table.header_line}",
            hint="give dlprof_kernel.csv (--reports=kernel)",
        )
    for row in table.rows(imported):
        try:
            batch.operators.append(_operator(row, name, count, times))
        except ValueError as error:
            imported.bad(row.line, str(error))


def _operator(row: CsvRow, name: str, count: str, times: dict[str, tuple[str, float]]) -> OperatorObservation:
    text = row[name]
    if not text:
        raise ValueError(f"column '{name}' is empty")
    calls = row.whole(count) if count else None
    seconds = {which: row.number(column) / per_second for which, (column, per_second) in times.items()}
    if any(value < 0 for value in seconds.values()):
        raise ValueError("a time is negative")
    if calls is not None and calls < 1:
        raise ValueError(f"column '{count}' is {calls}")
    return OperatorObservation(
        operator=kernel_class(text),
        name=text[:_LONGEST_NAME],
        timing=Timing(
            seconds["mean"] if "mean" in seconds else seconds["total"] / (calls or 1),
            statistic="single" if calls == 1 else "mean",
            num_samples=calls,
            min_s=seconds.get("min"),
            max_s=seconds.get("max"),
        ),
        row=row.line,
    )


def _read_kernels(database: Database, batch: Batch, imported: Imported) -> None:
    if not database.has("view_iteration_kernels", "kernel_name", "kernel_duration"):
        return
    view = "view_iteration_kernels"
    grid, block = (each if database.has(view, each) else "''" for each in ("grid", "block"))
    kernels = KernelGroups()
    broken = 0
    for name, duration, grid_size, block_size in database.rows(
        f"SELECT kernel_name, kernel_duration, {grid}, {block} FROM {view} {_first_only(database, view)}"
    ):
        ticks = _whole(duration)
        if ticks is None or not isinstance(name, str) or not name:
            broken += 1
            continue
        kernels.add(name, str(grid_size or "")[:60], str(block_size or "")[:60], ticks)
    if broken:
        imported.bad(view, f"{broken} kernels without a name or with an impossible duration")
    kernels.store(batch, imported, _NANOSECONDS_PER_S)


def _read_iterations(database: Database, batch: Batch, imported: Imported) -> None:
    view = "view_iterations_profiled"
    if not database.has(view, "iter_value", "duration"):
        return
    query = f"SELECT iter_value, duration FROM {view} {_first_only(database, view)} LIMIT {_MAX_ITERATIONS}"
    for number, duration in database.rows(query):
        ticks, iteration = _whole(duration), _whole(number)
        if not ticks:
            imported.bad(view, f"iteration {str(number)[:20]} has no possible duration")
            continue
        timing = Timing(ticks / _NANOSECONDS_PER_S, statistic="single", num_samples=1)
        batch.iterations.append(IterationObservation(timing, iteration=iteration))


def _first_only(database: Database, view: str) -> str:
    """A database may hold several aggregations of the same run: only the first is read."""
    return f"WHERE aggr_id = (SELECT min(aggr_id) FROM {view})" if database.has(view, "aggr_id") else ""


def _device(database: Database) -> str:
    for view in ("view_gpu_devices", "view_gpu_names"):
        if database.has(view, "gpu_name"):
            names = {row[0] for row in database.rows(f"SELECT DISTINCT gpu_name FROM {view} LIMIT 64")}
            found = names.pop() if len(names) == 1 else None
            return found[:100] if isinstance(found, str) else ""
    return ""


def _whole(value: Any) -> int | None:
    if isinstance(value, float):
        value = round(value) if 0 <= value < 2**62 else None
    return value if isinstance(value, int) and 0 <= value < 2**62 else None


FORMAT = Format("dlprof", "DLProf reports and database", matches, read)
