"""nccom-test (AWS Neuron): its table and its JSON report (``--report-to-json-file``).

    size(B)  count(elems)  type  time:avg(us)  algbw(GB/s)  busbw(GB/s)

Also ``time(us)`` (before 2.19), ``time:p50(us)`` ... (``--stats``), ``algorithm`` (``--show-algorithm``) and the two
sizes of ``--show-input-output-size``.  ``size`` is the full logical tensor (all_gather: the output).  The collective,
the ranks and the nodes stand in the command line only (``nccom-test -r 64 -N 2 -d fp32 allr``); the ratio of the
bandwidths gives the ranks as in nccl-tests, and all_reduce by itself.  A size that failed prints its error instead of
figures: stored as a failure.  The device is taken from the text where it says trn1, trn2 or inf2.
Source: AWS Neuron documentation, nccom-test user guide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from profiles.errors import DocumentInvalid
from profiles.importing.collective_names import KNOWN, operation_of, operation_within
from profiles.importing.dtype_names import dtype_of
from profiles.importing.environments import Batches, environment_of, finished, given_whole
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import BadRow, Imported
from profiles.importing.log_lines import LogLine, log_lines
from profiles.importing.number_cells import finite_number, shown, whole_number
from profiles.importing.ranks_of_bandwidth import RatioBounds, common_bounds, ranks_found, ratio_bounds
from profiles.importing.redaction import Redactor
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import CollectiveObservation, CollectiveOperation, Scalar
from profiles.observations.timing import Statistic, Timing
from profiles.safe_json import load_json_text

_HEADER = re.compile(r"\bsize\(B\)\s+count\(elems\)\s")
_JSON = re.compile(r'\s*[\[{]\s*["\[{\]}]')
_REPORT = re.compile(r'"size\(B\)"\s*:')
_COMMAND = re.compile(r"\bnccom-test\s+(?P<rest>[^|;&<>]*)")
_INSTANCE = re.compile(r"\b(trn1n?|trn2u?|trn3|inf2)\b", re.IGNORECASE)
_TIME = re.compile(r"time(?::(?P<statistic>avg|p\d{1,3}|min|max))?\((?P<unit>us|ms|s)\)")
_PER_S = {"us": 1e6, "ms": 1e3, "s": 1.0}


def matches(head: Head) -> bool:
    """Whether the text holds the header of a table, or is a report with its keys."""
    if _JSON.match(head.text):
        return bool(_REPORT.search(head.text)) and "algbw(GB/s)" in head.text
    return bool(_HEADER.search(head.text)) and "algbw(GB/s)" in head.text


@dataclass(slots=True)
class _Run:
    """One table: its rows by column name, and the command line above it."""

    place: int
    command: list[str] = field(default_factory=list)
    rows: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    failures: list[tuple[int, int, str]] = field(default_factory=list)


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """All tables of one log, or one report.  Raises DocumentInvalid when none can be used."""
    file = files[0]
    imported = Imported("nccom-test")
    instances: set[str] = set()
    report = _JSON.match(file.head().text) is not None
    runs = [_report(file)] if report else list(_tables(log_lines(file), imported, instances))
    batches = Batches()
    for run in runs:
        _collect(run, instances, imported, options, file, batches)
    if report:
        imported.bad_rows = [
            BadRow(bad.where.replace("line ", "/results/"), bad.what, bad.hint) for bad in imported.bad_rows
        ]
    imported.facts["num_rows_read"] = sum(len(run.rows) + len(run.failures) for run in runs)
    return finished(imported, batches, file, "there is no row of results", "give the whole output of nccom-test")


def _report(file: SourceFile) -> _Run:
    """The rows of a JSON report."""
    document = load_json_text(file.text(), file.where)
    results: Any = document.get("results") if isinstance(document, dict) else document
    if not isinstance(results, list):
        raise DocumentInvalid("the report has no list of results", where=f"{file.where}#/results", hint="run it again")
    run = _Run(0)
    for index, result in enumerate(results):
        cells = {str(key): str(value) for key, value in result.items()} if isinstance(result, dict) else {}
        run.rows.append((index, cells))
    config = document.get("config") if isinstance(document, dict) else None
    if isinstance(config, dict):
        ranks = config.get("nranks", config.get("ranks"))
        run.command = ["-r", str(ranks)] if isinstance(ranks, int) else []
    return run


def _tables(lines: Iterable[LogLine], imported: Imported, instances: set[str]) -> Iterator[_Run]:
    run: _Run | None = None
    columns: list[str] = []
    command: list[str] = []
    for line in lines:
        instances |= {match.group(1).casefold() for match in _INSTANCE.finditer(line.text)}
        if _HEADER.search(line.text):
            if run is not None:
                yield run
            columns = line.text.replace("|", " ").split()
            run = _Run(line.number, command)
            continue
        if match := _COMMAND.search(line.text):
            command = match.group("rest").split()
        words = line.text.replace("|", " ").split()
        if run is None or len(words) < 2 or not re.fullmatch(r"-?\d\S*", words[0]):
            continue
        if len(words) == len(columns):
            run.rows.append((line.number, dict(zip(columns, words, strict=True))))
        elif "ailure" in line.text and words[0].isdigit() and len(words[0]) < 19:
            run.failures.append((line.number, int(words[0]), Redactor().clean(" ".join(words[1:]))[:200]))
        elif (len(words) > 3 and not set(words[2]) <= set("0123456789.")) or len(words) >= len(columns) - 1:
            imported.bad(line.number, f"{len(words)} columns do not fit the header, which has {len(columns)}")
    if run is not None:
        yield run


@dataclass(frozen=True, slots=True)
class _Row:
    place: int
    size: int
    dtype: str
    timing: Timing
    bounds: RatioBounds | None
    detail: dict[str, Scalar]
    algorithm: str


def _row(place: int, cells: dict[str, str]) -> _Row:
    """One row.  Raises ValueError."""
    size = whole_number(cells.get("size(B)", ""))
    times = {name: found for name in cells if (found := _TIME.fullmatch(name))}
    if not times:
        raise ValueError("the row has no time")
    main = next((name for name, found in times.items() if found["statistic"] in (None, "avg")), "")
    main = main or next((name for name, found in times.items() if found["statistic"] == "p50"), next(iter(times)))
    values = {name: finite_number(cells[name]) / _PER_S[found["unit"]] for name, found in times.items()}
    if not 0 <= size < 2**62 or any(value < 1e-12 for value in values.values()):
        raise ValueError(f"size {size} in time {shown(cells[main])} is impossible")
    bounds = _checked_bounds(size, values[main], cells, times[main]["statistic"] in (None, "avg"))
    by_statistic = {str(found["statistic"]): values[name] for name, found in times.items() if name != main}
    detail: dict[str, Scalar] = {
        f"{name}_s": value for name, value in by_statistic.items() if name not in ("p10", "p90", "min", "max")
    }
    kind = times[main]["statistic"]
    statistic: Statistic = "mean" if kind in (None, "avg") else "median" if kind == "p50" else "unknown"
    if statistic == "unknown":
        detail["statistic"] = str(kind)
    timing = Timing(
        values[main],
        statistic=statistic,
        min_s=by_statistic.get("min"),
        p10_s=by_statistic.get("p10"),
        p90_s=by_statistic.get("p90"),
        max_s=by_statistic.get("max"),
    )
    return _Row(place, size, dtype_of(cells.get("type", "")), timing, bounds, detail, cells.get("algorithm", ""))


def _checked_bounds(size: int, time_s: float, cells: dict[str, str], from_mean: bool) -> RatioBounds | None:
    """The ratio of the bandwidths.  Raises ValueError where bandwidth and time contradict each other."""
    algbw, busbw = cells.get("algbw(GB/s)", ""), cells.get("busbw(GB/s)", "")
    value = finite_number(algbw)
    finite_number(busbw)
    expected = size / time_s / 1e9
    # The first versions divided by 2^30; short times were printed in whole microseconds.
    if from_mean and value >= 0.5 and time_s > 2e-5 and not 0.85 * expected <= value <= 1.15 * expected:
        raise ValueError(f"{value} GB/s is not size over time ({expected:.4g} GB/s): are columns mixed up?")
    digits = 6 if len(algbw.partition(".")[2]) > 3 else 2
    return ratio_bounds(f"{value:.{digits}f}", f"{float(busbw):.{digits}f}")


def _collect(
    run: _Run, instances: set[str], imported: Imported, options: ReadOptions, file: SourceFile, batches: Batches
) -> None:
    rows: list[_Row] = []
    for place, cells in run.rows:
        try:
            rows.append(_row(place, cells))
        except ValueError as error:
            imported.bad(place, str(error))
    if not rows and not run.failures:
        return
    bounds, agrees = common_bounds(row.bounds for row in rows if row.bounds is not None)
    operation = _operation(run, bounds if agrees else None, options, file.name)
    if operation is None:
        what = f"nothing tells which collective these {len(rows)} rows measured"
        imported.bad(run.place, what, f"name it with --set operation=... ({KNOWN})")
        return
    size, nodes, per_node, groups = _group(run, operation, bounds if agrees else None, options, imported)
    reported = instances.copy().pop() if len(instances) == 1 else ""
    environment = environment_of(
        options,
        reported,
        num_devices=size if groups in (None, 1) else None,
        num_nodes=nodes,
        devices_per_node=per_node,
        communication_library="nccom",
    )
    batch = batches.of(environment)
    for row in rows:
        if row.size == 0:
            imported.skip("size 0")
            continue
        batch.collectives.append(
            CollectiveObservation(
                operation=operation,
                size_bytes=row.size,
                group_size=size,
                timing=row.timing,
                dtype=row.dtype,
                num_nodes=nodes,
                devices_per_node=per_node,
                concurrent_groups=groups,
                algorithm=row.algorithm,
                detail=row.detail,
                row=row.place,
            )
        )
    for place, failed_size, reason in run.failures:
        batch.collectives.append(
            CollectiveObservation(operation, failed_size, size, None, ok=False, error=reason, row=place)
        )


def _operation(
    run: _Run, bounds: RatioBounds | None, options: ReadOptions, file_name: str
) -> CollectiveOperation | None:
    """By the user, the command line, the file name, or the bandwidths (a ratio above one is all_reduce)."""
    given = options.given.get("operation")
    if given is not None:
        return operation_of(given)
    for word in reversed(run.command):
        if (named := operation_of("sendrecv" if word in ("permute", "sendrecv") else word)) is not None:
            return named
    named = operation_within(file_name)
    if named is not None:
        return named
    return "all_reduce" if bounds is not None and bounds.low > 1 else None


def _group(
    run: _Run, operation: str, bounds: RatioBounds | None, options: ReadOptions, imported: Imported
) -> tuple[int | None, int | None, int | None, int | None]:
    """Ranks of a group, nodes, ranks per node, groups at once."""
    ranks, nodes = _switch(run, "-r", "--nworkers"), _switch(run, "-N", "--nnodes")
    split = _switch(run, "--data-parallel-dimension")
    stated = split or ranks or given_whole(options, "group_size")
    found = ranks_found(operation, bounds)
    if found is not None and found.count is not None and found.count != stated:
        if stated is not None:
            what = (
                f"the command line names {stated} ranks, the bandwidths belong to {found.count}; {found.count} is used"
            )
            imported.flag("rank-mismatch", what, run.place or None)
        stated = found.count
    elif found is not None and stated is not None and not found.allows(stated):
        imported.flag("rank-mismatch", f"the bandwidths do not belong to {stated} ranks", run.place or None)
    if stated is None:
        imported.flag("group-size-unknown", "nothing tells the number of ranks; give it with --set group_size=")
    groups = ranks // split if ranks and split and ranks % split == 0 else None
    nodes = nodes or given_whole(options, "num_nodes")
    if nodes is None and ranks is not None and not {"-s", "--hosts", "--hosts-file"} & set(run.command):
        nodes = 1
    if split:
        return stated, None, None, groups
    per_node = given_whole(options, "devices_per_node")
    if per_node is None and stated and nodes and stated % nodes == 0:
        per_node = stated // nodes
    return stated, nodes, per_node, groups


def _switch(run: _Run, *names: str) -> int | None:
    for word, value in zip(run.command, run.command[1:], strict=False):
        if word in names and value.isascii() and value.isdigit() and len(value) < 8:
            return int(value) or None
    return None


FORMAT = Format("nccom-test", "nccom-test (AWS Neuron)", matches, read)
