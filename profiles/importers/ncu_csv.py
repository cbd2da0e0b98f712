"""Nsight Compute: kernel times under the profiler, from ``ncu --csv``, long form and ``--page raw``.

Recognised by a header row with ``Kernel Name`` and either ``Metric Name``, ``Metric Unit``, ``Metric Value`` (one row a
metric) or ``gpu__time_duration.sum`` (one row a launch, with a second header row of units).  Lines of ``==PROF==`` and
of the application stand before, between and after.  The time is ``gpu__time_duration.sum`` or ``Duration``, in the unit
that the file prints (ns, us, ms, s and their long names).

Traps: by default ncu locks clocks to base, flushes caches before each kernel and replays it, so a time is that of one
cold launch and 10 to 30 % slow: flagged ``locked-clocks``.  Numbers follow the locale of the machine: ``1,234.5`` or
``1.234,5``; the file is searched for numbers that settle which.  Launches of one kernel, grid and block are reduced to
one observation.  The columns with host and process names are not read.
Source: NVIDIA Nsight Compute CLI user guide; microsoft/superbenchmark tests/data/cublaslt_ncu.log.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from profiles.errors import DocumentInvalid
from profiles.importing.csv_rows import MAX_COLUMNS
from profiles.importing.duration_statistics import Durations
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.kernel_names import kernel_class
from profiles.importing.number_cells import finite_number, shown
from profiles.importing.redaction import Redactor
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.environment import Environment
from profiles.observations.records import OperatorObservation

_TIMES = ("gpu__time_duration.sum", "gpu__time_duration.avg", "gpu__time_duration", "Duration", "Elapsed Time")
_CLOCKS = ("SM Frequency", "smsp__cycles_elapsed.avg.per_second", "sm__cycles_elapsed.avg.per_second")
_PER_SECOND = {
    "ns": 1e9, "nsecond": 1e9, "nanosecond": 1e9, "us": 1e6, "usecond": 1e6, "microsecond": 1e6,
    "ms": 1e3, "msecond": 1e3, "millisecond": 1e3, "s": 1.0, "sec": 1.0, "second": 1.0,
}  # fmt: skip
_HZ = {"hz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9, "cycle/second": 1.0, "cycle/nsecond": 1e9, "cycle/usecond": 1e6}
_METRIC_COLUMNS = ("Kernel Name", "Metric Name", "Metric Value")
_HEADER = re.compile(r'(?m)^[^\n]{0,200}?"?ID"?,[^\n]{0,4000}"?Kernel Name"?,[^\n]*(?:"?Metric Name"?|gpu__)')
_EUROPEAN = re.compile(r"\d+,\d{1,2}|\d+,\d{4,}|\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}")
_ENGLISH = re.compile(r"\d+\.\d{1,2}|\d+\.\d{4,}|\d{1,3}(?:,\d{3})+\.\d+|\d{1,3}(?:,\d{3}){2,}")
_EITHER = re.compile(r"\d{1,3}[.,]\d{3}")
_LONGEST_NAME = 400


@dataclass(slots=True)
class _Metrics:
    """Cells of one launch: metric name to (value as printed, unit)."""

    name: str
    grid: str
    block: str
    line: int
    values: dict[str, tuple[str, str]] = field(default_factory=dict)


def matches(head: Head) -> bool:
    """Whether the head holds the header of ncu's CSV."""
    return bool(_HEADER.search(head.text)) and "Kernel Name" in head.text


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Launches by kernel, grid and block.  Raises DocumentInvalid without a single time."""
    file = files[0]
    imported = Imported(tool="ncu")
    launches = _launches(file, imported)
    decimal_comma = _decimal_comma(launches, file)
    groups: dict[tuple[str, str, str], tuple[Durations, int]] = {}
    clocks: list[float] = []
    for launch in launches:
        try:
            picoseconds = _picoseconds(launch, decimal_comma)
            clock = _clock_hz(launch, decimal_comma)
            groups.setdefault((launch.name, launch.grid, launch.block), (Durations(), launch.line))[0].add(picoseconds)
        except (ValueError, OverflowError) as error:
            imported.bad(launch.line, str(error))
            continue
        if clock is not None:
            clocks.append(clock)
    batch = Batch(_environment(options, clocks))
    for key, (durations, line) in groups.items():
        _add(batch, imported, key, durations, line)
    if not batch.operators:
        found = imported.bad_rows[0].what if imported.bad_rows else "no kernel has a time"
        hint = "record with: ncu --csv --metrics gpu__time_duration.sum (or --set basic)"
        raise DocumentInvalid(f"nothing to import: {found}", where=file.where, hint=hint)
    imported.flag(
        "locked-clocks",
        "ncu locks clocks to base and flushes caches unless told otherwise: times are 10 to 30 % long; use ratios only",
    )
    if decimal_comma:
        imported.flag("decimal-comma", "numbers were read with a comma before the decimals, as the file prints them")
    imported.batches = [batch]
    return imported


def _environment(options: ReadOptions, clocks: list[float]) -> Environment:
    clock = sorted(clocks)[len(clocks) // 2] if clocks else None
    return Environment(device=options.given.get("device", ""), clocks_locked=None, clock_hz=clock or None)


def _add(batch: Batch, imported: Imported, key: tuple[str, str, str], durations: Durations, line: int) -> None:
    name, grid, block = key
    plain = Redactor().clean(name)[:_LONGEST_NAME]
    try:
        batch.operators.append(
            OperatorObservation(
                operator=kernel_class(plain),
                name=plain,
                timing=durations.timing(1e12),
                detail={key: value for key, value in (("grid", grid), ("block", block)) if value},
                row=line,
            )
        )
    except ValueError as error:
        imported.bad(line, str(error))


def _launches(file: SourceFile, imported: Imported) -> list[_Metrics]:
    """Every launch with its metrics, from all tables of the file."""
    found: dict[tuple[int, str, str], _Metrics] = {}
    header: list[str] = []
    units: dict[str, str] | None = None
    table = 0
    for line, cells in _rows(file):
        if "Kernel Name" in cells and ("Metric Name" in cells or any(name in cells for name in _TIMES)):
            header, units, table = cells, None, table + 1
            continue
        if not header or len(cells) < 3:
            continue
        # Rows of metrics leave out the last columns, which are for rules.
        named = [place + 1 for place, name in enumerate(header) if name in _METRIC_COLUMNS]
        needed = max(named) if "Metric Name" in header else len(header)
        if not needed <= len(cells) <= len(header):
            imported.bad(line, f"{len(cells)} columns where the header has {len(header)}", "is the file cut off here?")
            continue
        row = dict(zip(header, cells, strict=False))
        if "Metric Name" not in header and units is None:
            units = row if not row["Kernel Name"] else {}
            if units:
                continue
        # A range or an application replay repeats ids from zero in every process.
        key = (table, f"{row.get('Process ID', '')}/{row.get('ID', line)}", row["Kernel Name"])
        launch = found.setdefault(
            key, _Metrics(row["Kernel Name"], row.get("Grid Size", ""), row.get("Block Size", ""), line)
        )
        if "Metric Name" in header:
            launch.values.setdefault(row["Metric Name"], (row.get("Metric Value", ""), row.get("Metric Unit", "")))
        else:
            for name in (*_TIMES, *_CLOCKS):
                if name in row:
                    launch.values.setdefault(name, (row[name], (units or {}).get(name, "")))
    return list(found.values())


def _rows(file: SourceFile) -> Iterator[tuple[int, list[str]]]:
    for number, line in file.lines():
        text = line.strip()
        if not text or text.startswith("==") or "," not in text:
            continue
        try:
            cells = [cell.strip() for cell in next(csv.reader([text]), [])]
        except csv.Error as error:
            raise DocumentInvalid(
                f"line {number} cannot be read as CSV: {error}",
                where=f"{file.where}:{number}",
                hint="look for a quote that is opened and never closed",
            ) from None
        if len(cells) > MAX_COLUMNS:
            raise DocumentInvalid(
                f"line {number} has {len(cells):,} columns",
                where=f"{file.where}:{number}",
                hint=f"at most {MAX_COLUMNS:,} are read; check that this is the right file",
            )
        yield number, cells


def _picoseconds(launch: _Metrics, decimal_comma: bool) -> int:
    if not launch.name:
        raise ValueError("the row has no kernel name")
    for name in _TIMES:
        text, unit = launch.values.get(name, ("", ""))
        if not text:
            continue
        if unit not in _PER_SECOND:
            told = f"the unit {shown(unit)}" if unit else "no unit"
            raise ValueError(f"{name} has {told}; known are ns, us, ms and s")
        value = _number(text, decimal_comma)
        if value <= 0:
            raise ValueError(f"{name} is {text}; a kernel takes some time")
        return round(value / _PER_SECOND[unit] * 1e12)
    raise ValueError(f"kernel {shown(launch.name)} has no time among its metrics")


def _clock_hz(launch: _Metrics, decimal_comma: bool) -> float | None:
    for name in _CLOCKS:
        text, unit = launch.values.get(name, ("", ""))
        if text and unit.casefold() in _HZ:
            return _number(text, decimal_comma) * _HZ[unit.casefold()]
    return None


def _number(text: str, decimal_comma: bool) -> float:
    if decimal_comma:
        text = text.translate(str.maketrans(".,", ",."))
    return finite_number(text, thousands=True)


def _decimal_comma(launches: list[_Metrics], file: SourceFile) -> bool:
    """Whether the comma stands before the decimals.  Raises DocumentInvalid where a time could be read either way."""
    texts = [text for launch in launches for text, _ in launch.values.values()]
    times = [launch.values[name] for launch in launches for name in _TIMES if name in launch.values]
    unclear = [(text, unit) for text, unit in times if _EITHER.fullmatch(text)]
    # Nanoseconds are the base unit and printed whole: three digits behind a mark are thousands.
    whole = [text for text, unit in unclear if _PER_SECOND.get(unit) == 1e9]
    european = any(_EUROPEAN.fullmatch(text) for text in texts) or any("." in text for text in whole)
    english = any(_ENGLISH.fullmatch(text) for text in texts) or any("," in text for text in whole)
    if unclear and european == english:
        raise DocumentInvalid(
            f"'{unclear[0][0]}' may be a fraction or thousands, depending on the locale of the machine",
            where=file.where,
            hint="record again with LC_ALL=C, or with --print-units base and more metrics",
        )
    return european and not english


FORMAT = Format("ncu-csv", "Nsight Compute CSV", matches, read)
