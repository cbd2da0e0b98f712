"""hccl_demo (Intel Gaudi): its summary table and its benchmark lines.

    [SUMMARY REPORT]
    (src!=dst, collective=all_reduce, iterations=1000)
    size  count  type  redop  time  algo_bw  nw_bw
    (B)   (elements)          (ms)  (GB/s)   (GB/s)

    [BENCHMARK] hcclAllReduce(src!=dst, data_size=33554432, count=8388608, dtype=float, iterations=1000)
    [BENCHMARK]     NW Bandwidth   : 258.259144 GB/s
    [BENCHMARK]     Algo Bandwidth : 147.576654 GB/s

``nw_bw`` is the bus bandwidth; times are means over the iterations, launched back to back.  Traps: the unit of time
changed and some releases print milliseconds under ``(us)``, so size over time is checked against ``algo_bw``; a
benchmark line has no time at all (it is size over algorithm bandwidth); all_gather gives the size of one rank's part
(its nw_bw is algo_bw x (n - 1)), the other collectives the full tensor.
Source: HabanaAI/hccl_demo, hccl_demo.cpp (print_report, describe_stat), README.md.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from profiles.importing.collective_names import KNOWN, operation_of
from profiles.importing.dtype_names import dtype_of, element_bytes
from profiles.importing.environments import Batches, environment_of, finished, given_whole
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.log_lines import LogLine, log_lines
from profiles.importing.number_cells import finite_number, whole_number
from profiles.importing.ranks_of_bandwidth import RatioBounds, ranks_found, ratio_bounds
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import CollectiveObservation, CollectiveOperation, Scalar
from profiles.observations.timing import Timing

_HEADER = re.compile(r"\bsize\s+count\s+type\b.*\btime\s+algo_?BW\s+nw_bw\b", re.IGNORECASE)
_BENCHMARK = re.compile(r"\[BENCHMARK\]\s+(?:hccl)?([A-Za-z]\w*)\(([^)]*)\)")
_BANDWIDTH = re.compile(r"\[BENCHMARK\]\s+(NW|Algo)?\s*Bandwidth\s*:\s*(\S+)\s*([KMG]?)B/s")
_SETTING = re.compile(r"collective=(\w+)(?:.*iterations=(\d{1,9}))?")
_UNIT = re.compile(r"\(B\).*\((us|ms|s|ns)\)")
_SWITCH = re.compile(r"--(nranks|ranks_per_node)[= ](\d{1,6})\b")
_DEVICE = re.compile(r"\b(gaudi ?[23]|hl-?[23]25\w?)\b", re.IGNORECASE)
_REQUIRED = {"size", "count", "type", "time", "algo_bw", "nw_bw"}
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "ns": 1e-9}
_SCALE = {"": 1e-9, "K": 1e-6, "M": 1e-3, "G": 1.0}


def matches(head: Head) -> bool:
    """Whether the text holds the header of the summary or a benchmark line."""
    return bool(_HEADER.search(head.text)) or bool(_BENCHMARK.search(head.text) and _BANDWIDTH.search(head.text))


@dataclass(frozen=True, slots=True)
class _Result:
    """One result as printed; ``size`` may be that of one rank's part."""

    line: int
    name: str
    size: int
    time_s: float
    bounds: RatioBounds | None
    dtype: str
    redop: str
    iterations: int | None
    from_bandwidth: bool = False


@dataclass(slots=True)
class _Log:
    """What the lines so far say about those to come."""

    imported: Imported
    options: ReadOptions
    switches: dict[str, int] = field(default_factory=dict)
    devices: set[str] = field(default_factory=set)
    collective: str = ""
    iterations: int | None = None
    columns: list[str] = field(default_factory=list)
    unit: str = ""
    benchmark: tuple[int, str, dict[str, str]] | None = None
    bandwidths: dict[str, str] = field(default_factory=dict)
    scale: float = 1.0
    found: list[CollectiveObservation] = field(default_factory=list)


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """All results of one log.  Raises DocumentInvalid when it has none."""
    file = files[0]
    log = _Log(Imported("hccl_demo"), options)
    for line in log_lines(file):
        try:
            _take(log, line)
        except ValueError as error:
            log.imported.bad(line.number, str(error))
    batches = Batches()
    reported = log.devices.copy().pop() if len(log.devices) == 1 else ""
    for observation in log.found:
        environment = environment_of(
            options,
            reported,
            num_devices=observation.group_size,
            num_nodes=observation.num_nodes,
            devices_per_node=observation.devices_per_node,
            communication_library="hccl",
        )
        batches.of(environment).collectives.append(observation)
    log.imported.facts["num_rows_read"] = len(log.found)
    return finished(log.imported, batches, file, "there are no results", "give the whole output of hccl_demo")


def _take(log: _Log, line: LogLine) -> None:
    """Take in one line.  Raises ValueError for a result that cannot be used."""
    text = line.text
    log.switches.update({name: int(value) for name, value in _SWITCH.findall(text) if int(value) > 0})
    log.devices |= {re.sub(r"\s", "", match.group(1).casefold()) for match in _DEVICE.finditer(text)}
    if (setting := _SETTING.search(text)) and "src!=dst" in text:
        log.collective, log.iterations = setting.group(1), int(setting.group(2) or 0) or None
    elif _HEADER.search(text):
        columns = text.casefold().replace("algobw", "algo_bw").replace("|", " ").split()
        log.columns, log.unit = columns if set(columns) >= _REQUIRED else [], ""
    elif log.columns and (unit := _UNIT.search(text)):
        log.unit = unit.group(1)
    elif match := _BENCHMARK.search(text):
        settings = dict(part.strip().split("=", 1) for part in match.group(2).split(",") if "=" in part)
        log.benchmark, log.bandwidths = (line.number, match.group(1), settings), {}
    elif (match := _BANDWIDTH.search(text)) and log.benchmark is not None:
        log.bandwidths[match.group(1) or "only"], log.scale = match.group(2), _SCALE[match.group(3)]
        _finish_benchmark(log)
    elif log.columns and re.match(r"[\s|]*-?\d+\s+[\d|]", text):
        _row(log, line)


def _row(log: _Log, line: LogLine) -> None:
    words = [word for word in line.text.replace("|", " ").split() if word not in ("us", "ms", "GB/s")]
    if any(word.startswith("<") for word in words):
        raise ValueError("the row holds placeholders, not results")
    if len(words) != len(log.columns):
        raise ValueError(f"{len(words)} columns do not fit the header, which has {len(log.columns)}")
    cells = dict(zip(log.columns, words, strict=True))
    size, count = whole_number(cells["size"]), whole_number(cells["count"])
    algorithm, time = finite_number(cells["algo_bw"]), finite_number(cells["time"])
    if size <= 0 or count <= 0 or time < 1e-9 or algorithm < 0:
        raise ValueError("size, count and time are numbers above zero")
    time_s = _settled(log, size, time, algorithm, line.number)
    bounds = ratio_bounds(cells["algo_bw"], cells["nw_bw"])
    if bounds is None and algorithm >= 0.01:
        raise ValueError("nw_bw is no bandwidth")
    redop = cells.get("redop", "")
    result = _Result(line.number, log.collective, size, time_s, bounds, cells["type"], redop, log.iterations)
    log.found.append(_observation(log, result))


def _settled(log: _Log, size: int, time: float, algorithm: float, line: int) -> float:
    """Seconds: in the unit that makes size over time the algorithm bandwidth.  Raises ValueError if none does."""
    if algorithm < 0.001:
        if not log.unit:
            raise ValueError("the table prints no unit of time and no bandwidth that would show it")
        if size / (time * _SECONDS[log.unit]) > 0.01e9:
            raise ValueError(f"algo_bw is {algorithm:g} GB/s, far from size over time: are columns mixed up?")
        return time * _SECONDS[log.unit]
    fitting = [unit for unit, each in _SECONDS.items() if 0.9 <= size / (time * each) / 1e9 / algorithm <= 1.1]
    if not fitting:
        raise ValueError(f"{algorithm} GB/s is size over time in no unit of time: are columns mixed up?")
    if log.unit and fitting[0] != log.unit and all(flag.code != "unit-corrected" for flag in log.imported.flags):
        what = f"the header says {log.unit}, the bandwidths show that the times are in {fitting[0]}"
        log.imported.flag("unit-corrected", what, line)
    return time * _SECONDS[fitting[0]]


def _finish_benchmark(log: _Log) -> None:
    """The result of a benchmark block, once both bandwidths are read."""
    line, name, settings = log.benchmark or (0, "", {})
    if "only" in log.bandwidths:
        log.benchmark = None
        raise ValueError("one bandwidth alone does not say whether it is that of the algorithm; use a newer hccl_demo")
    if len(log.bandwidths) < 2:
        return
    log.benchmark = None
    dtype = {"fp32": "float"}.get(settings.get("dtype", ""), settings.get("dtype", ""))
    size_text = settings.get("data_size") or settings.get("dataSize")
    element = element_bytes(dtype)
    if size_text is None and element is None:
        raise ValueError(f"the block names neither its size nor a known number format ('{dtype[:20]}')")
    size = whole_number(size_text) if size_text else whole_number(settings.get("count", "")) * (element or 1)
    algorithm, bus = (finite_number(log.bandwidths[key]) * log.scale for key in ("Algo", "NW"))
    if size <= 0 or algorithm < 1e-9:
        raise ValueError("size and bandwidth are numbers above zero")
    bounds = ratio_bounds(log.bandwidths["Algo"], log.bandwidths["NW"]) if bus > 0 else None
    iterations = settings.get("iterations", "")
    repeated = int(iterations) if iterations.isdigit() and 0 < len(iterations) < 10 else None
    redop = "sum" if "educe" in name else ""
    time_s = size / (algorithm * 1e9)
    result = _Result(line, name, size, time_s, bounds, dtype, redop, repeated or None, from_bandwidth=True)
    log.found.append(_observation(log, result))


def _observation(log: _Log, result: _Result) -> CollectiveObservation:
    """The observation of one result.  Raises ValueError where its collective is unknown."""
    operation = operation_of(result.name) or operation_of(log.options.given.get("operation", ""))
    if operation is None:
        hint = f"--set operation=... ({KNOWN})"
        raise ValueError(f"nothing tells which collective this row measured; name it with {hint}")
    ranks, full_size = _ranks_and_size(log, result, operation)
    per_node = log.switches.get("ranks_per_node") or given_whole(log.options, "devices_per_node")
    if ranks is None or per_node is None or ranks % per_node:
        per_node = None
    detail: dict[str, Scalar] = {"time_from": "algorithm bandwidth"} if result.from_bandwidth else {}
    return CollectiveObservation(
        operation=operation,
        size_bytes=full_size,
        group_size=ranks,
        timing=Timing(result.time_s, statistic="mean", num_samples=result.iterations),
        dtype=dtype_of(result.dtype),
        num_nodes=ranks // per_node if ranks and per_node else None,
        devices_per_node=per_node,
        in_place=False,
        reduction=result.redop,
        launch="back_to_back",
        detail=detail,
        row=result.line,
    )


def _ranks_and_size(log: _Log, result: _Result, operation: CollectiveOperation) -> tuple[int | None, int]:
    """Ranks by the bandwidths, else as stated; and the size of the full tensor."""
    bounds, size = result.bounds, result.size
    stated = log.switches.get("nranks") or given_whole(log.options, "group_size")
    if operation == "all_gather" and bounds is not None and bounds.low >= 0.99:
        # nw_bw = algo_bw x (n - 1): the size is that of one rank's part.
        ranks = round((bounds.low + bounds.high) / 2) + 1
        return ranks, size * ranks
    if bounds is not None and (bounds.low > 2 or bounds.high < 0.45) and operation != "all_gather":
        raise ValueError("no number of ranks gives this ratio of nw_bw to algo_bw: are columns mixed up?")
    found = ranks_found(operation, bounds)
    if found is not None and found.count is not None:
        if stated is not None and stated != found.count:
            what = f"{stated} ranks were stated, the bandwidths belong to {found.count}; {found.count} is used"
            log.imported.flag("rank-mismatch", what, result.line)
        return found.count, size
    if operation == "all_gather" and bounds is None:
        raise ValueError("the bandwidths are too small to tell whether the size is that of one rank or of all")
    return stated, size


FORMAT = Format("gaudi-hccl-demo", "hccl_demo (Intel Gaudi)", matches, read)
