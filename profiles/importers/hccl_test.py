"""hccl_test (Ascend): the table that ``all_reduce_test`` and its siblings print.

    the minbytes is 8192, maxbytes is 67108864, iters is 20, warmup_iters is 5
    data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:
    8192              | 764.55         | 0.00998              | success

Recognised by that header; the misspelling ``aveg`` is the program's, documents write ``avg``; columns may change place.
``data_size`` is the full logical tensor in every test (the program divides it by the ranks for all_gather and
reduce_scatter), time the mean over iterations.  Traps: ``alg_bandwidth`` is size over time (older programs: in units
of 2^30), never a bus bandwidth, so it does not tell the ranks; several ranks may each print the row of one size: the
slowest counts; ``check_result`` is success, failed or NULL (not checked); the collective and the ranks stand in the
command line only (``mpirun -n 16 ./bin/all_reduce_test -p 8 -d fp32 -o sum``).
Source: cann/oam-tools src/hccl_test (print_execution_time, cal_execution_time).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from profiles.importing.collective_names import KNOWN, exact_name, operation_of, operation_within
from profiles.importing.dtype_names import dtype_of
from profiles.importing.environments import Batches, environment_of, finished, given_whole
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.launch_command import Launched, launched
from profiles.importing.log_lines import LogLine, log_lines
from profiles.importing.number_cells import finite_number, shown, whole_number
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import CollectiveObservation, CollectiveOperation, Scalar
from profiles.observations.timing import Timing

_HEADER = re.compile(r"data_size\s*\(Bytes\):?\s*\||\|\s*data_size\s*\(Bytes\)", re.IGNORECASE)
_ECHO = re.compile(r"iters is (\d{1,9})")
_COMMAND = re.compile(r"([a-z_0-9]+)_test\b(?P<rest>[^|;&<>]*)")
_DEVICE = re.compile(r"\bAscend ?(?:910[A-Z_]\w*|950\w*|310\w*)", re.IGNORECASE)
_TIME_UNITS = {"us": 1e6, "ms": 1e3, "s": 1.0}


def matches(head: Head) -> bool:
    """Whether the text holds the header of such a table."""
    return bool(_HEADER.search(head.text)) and "alg_bandwidth" in head.text


@dataclass(slots=True)
class _Row:
    line: int
    size: int
    time_s: float
    result: str
    num_ranks_seen: int = 1


@dataclass(slots=True)
class _Table:
    """One table and what stood above it."""

    columns: dict[str, int]
    per_s: float
    line: int
    program: str = ""
    switches: dict[str, str] = field(default_factory=dict)
    launch: Launched | None = None
    iterations: int | None = None
    rows: list[_Row] = field(default_factory=list)


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """All tables of one log.  Raises DocumentInvalid when none can be used."""
    file = files[0]
    imported = Imported("hccl_test")
    tables, devices = _tables(log_lines(file), imported)
    batches = Batches()
    for table in tables:
        _collect(table, devices, imported, options, file, batches)
    imported.facts["num_rows_read"] = sum(len(table.rows) for table in tables)
    return finished(imported, batches, file, "there is no row of results", "give the whole output of the test program")


def _tables(lines: Iterable[LogLine], imported: Imported) -> tuple[list[_Table], set[str]]:
    tables: list[_Table] = []
    devices: set[str] = set()
    program, switches, launch, iterations = "", dict[str, str](), None, None
    for line in lines:
        devices |= {match.group() for match in _DEVICE.finditer(line.text)}
        if _HEADER.search(line.text):
            columns, per_s = _columns(line.text)
            if tables and not tables[-1].rows and tables[-1].columns == columns:
                continue
            tables.append(_Table(columns, per_s, line.number, program, switches, launch, iterations))
            iterations = None
        elif match := _ECHO.search(line.text):
            iterations = int(match.group(1)) or None
        elif tables and "|" in line.text and re.search(r"\d", line.text):
            _add(tables[-1], line, imported)
        elif "_test" in line.text and (command := _COMMAND.search(line.text)) and operation_of(command.group(1)):
            program, switches = command.group(1), _switches(command.group("rest"))
            launch = launched(line.text)
    return tables, devices


def _columns(text: str) -> tuple[dict[str, int], float]:
    """Position of each column, and units of time in a second."""
    columns: dict[str, int] = {}
    per_s = 1e6
    for index, cell in enumerate(text.strip().strip("|").split("|")):
        plain = cell.strip().rstrip(":").casefold()
        name = next((n for n in ("data_size", "time", "alg_bandwidth", "check_result") if n in plain), "")
        if name:
            columns.setdefault(name, index)
        unit = re.search(r"time\s*\((us|ms|s)\)", plain)
        if unit:
            per_s = _TIME_UNITS[unit.group(1)]
    return columns, per_s


def _add(table: _Table, line: LogLine, imported: Imported) -> None:
    """Take in one row; of several ranks that report one size the slowest stays."""
    cells = [cell.strip() for cell in line.text.strip().strip("|").split("|")]
    if set("".join(cells)) <= set("-: "):
        return
    try:
        row = _row(cells, table, line.number)
    except ValueError as error:
        imported.bad(line.number, str(error))
        return
    last = table.rows[-1] if table.rows else None
    if last is None or last.size != row.size:
        table.rows.append(row)
        return
    last.num_ranks_seen += 1
    imported.skip("further ranks that report the same size: the slowest counts")
    if row.result == "failed":
        last.result = "failed"
    if row.time_s > last.time_s:
        last.time_s, last.line = row.time_s, row.line


def _row(cells: list[str], table: _Table, line: int) -> _Row:
    """One row.  Raises ValueError."""
    columns = table.columns
    if "data_size" not in columns or "time" not in columns or len(cells) <= max(columns.values()):
        raise ValueError(f"{len(cells)} columns do not fit the header")
    size, time = whole_number(cells[columns["data_size"]]), finite_number(cells[columns["time"]])
    result = cells[columns["check_result"]].casefold() if "check_result" in columns else "null"
    if not 0 <= size < 2**62 or time < 1e-9:
        raise ValueError(f"size {size} in time {shown(cells[columns['time']])} is impossible")
    if result not in ("success", "failed", "null", ""):
        raise ValueError(f"check_result is {shown(result)}, not success, failed or NULL")
    if "alg_bandwidth" in columns:
        bandwidth = finite_number(cells[columns["alg_bandwidth"]])
        expected = size / (time / table.per_s) / 1e9
        # Old programs divide by 2^30; small figures have few digits.
        if bandwidth > 0.05 and not 0.85 * expected <= bandwidth <= 1.15 * expected:
            raise ValueError(f"{bandwidth} GB/s is not size over time ({expected:.4g} GB/s): are columns mixed up?")
    return _Row(line, size, time / table.per_s, result)


def _collect(
    table: _Table, devices: set[str], imported: Imported, options: ReadOptions, file: SourceFile, batches: Batches
) -> None:
    operation = _operation(table, options, file.name)
    if operation is None:
        if table.rows:
            what = f"nothing tells which collective these {len(table.rows)} rows measured"
            imported.bad(table.line, what, f"name it with --set operation=... ({KNOWN})")
        return
    size, nodes, per_node = _group(table, options)
    if size is None:
        what = "nothing tells the number of ranks; give it with --set group_size="
        imported.flag("group-size-unknown", what, table.line)
    reported = devices.copy().pop() if len(devices) == 1 else ""
    environment = environment_of(
        options,
        reported,
        num_devices=size,
        num_nodes=nodes,
        devices_per_node=per_node,
        communication_library="hccl",
    )
    batch = batches.of(environment)
    reducing = operation in ("all_reduce", "reduce_scatter", "reduce")
    for row in table.rows:
        if row.size == 0:
            imported.skip("size 0")
            continue
        observation = _observation(row, table, operation, size)
        batch.collectives.append(
            replace(
                observation,
                num_nodes=nodes,
                devices_per_node=per_node,
                reduction=table.switches.get("-o", "sum") if reducing and table.switches else "",
            )
        )


def _observation(
    row: _Row, table: _Table, operation: CollectiveOperation, group_size: int | None
) -> CollectiveObservation:
    detail: dict[str, Scalar] = dict(exact_name(table.program))
    if row.num_ranks_seen > 1:
        detail["over_ranks"] = "max"
    failed = row.result == "failed"
    dtype = table.switches.get("-d", "fp32" if table.switches else "")
    return CollectiveObservation(
        operation=operation,
        size_bytes=row.size,
        group_size=group_size,
        timing=Timing(
            row.time_s, statistic="mean", num_samples=table.iterations or _positive(table.switches.get("-n"))
        ),
        dtype=dtype_of(dtype),
        launch="back_to_back",
        detail=detail,
        ok=not failed,
        error="the check of the result failed" if failed else "",
        row=row.line,
    )


def _operation(table: _Table, options: ReadOptions, file_name: str) -> CollectiveOperation | None:
    given = options.given.get("operation")
    if given is not None:
        return operation_of(given)
    return operation_of(table.program) if table.program else operation_within(file_name)


def _group(table: _Table, options: ReadOptions) -> tuple[int | None, int | None, int | None]:
    """Ranks, nodes and ranks per node: from the command line, else from the user."""
    size = table.launch.num_ranks if table.launch else None
    per_node = _positive(table.switches.get("-p"))
    size = size if size is not None else given_whole(options, "group_size")
    per_node = per_node if per_node is not None else given_whole(options, "devices_per_node")
    nodes = given_whole(options, "num_nodes")
    if size is not None and per_node is not None and per_node <= size and size % per_node == 0:
        nodes = nodes if nodes is not None else size // per_node
    elif size is not None and per_node is None and nodes is not None and size % nodes == 0:
        per_node = size // nodes
    return size, nodes, per_node


def _switches(text: str) -> dict[str, str]:
    words = text.split()
    return {word: words[index + 1] for index, word in enumerate(words[:-1]) if re.fullmatch(r"-[a-z]", word)}


def _positive(text: str | None) -> int | None:
    return int(text) or None if text and text.isascii() and text.isdigit() and len(text) < 8 else None


FORMAT = Format("hccl-test", "hccl_test (Ascend)", matches, read)
