"""The Inspector's Prometheus text: one observation for each series of collectives.

    nccl_bus_bandwidth_gbs{..., n_nodes="1", nranks="4", collective="AllReduce", message_size="4-5GB",
        algo_proto="Ring_ll"} 678.263
    nccl_collective_exec_time_microseconds{...} 9498.47

Time is a mean (some builds add ``_min_``, ``_p50_``, ``_p95_``, ``_p99_``, ``_max_`` and a count).  The size is a
range of 10^n bytes: within it, the size follows from bus bandwidth and time; the flag ``size-from-bucket`` says so.
Early releases print one series a call with ``nccl_algorithm_bandwidth_gbs``: algorithm bandwidth times time is exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from profiles.importers.nccl_inspector.sizes import full_size_bytes
from profiles.importing.collective_names import exact_name, operation_of
from profiles.importing.imported import Imported
from profiles.importing.number_cells import finite_number
from profiles.importing.source_file import SourceFile
from profiles.observations.bandwidth import bus_factor
from profiles.observations.records import CollectiveObservation, Scalar
from profiles.observations.timing import Statistic, Timing

METRIC = re.compile(
    r"^nccl_(?:(?:p2p_)?bus_bandwidth_gbs|(?:collective|p2p)_exec_time_\w*microseconds)\{[^}\n]+\}[ \t]+\S",
    re.MULTILINE,
)
_LINE = re.compile(r"nccl_(\w+)\{(.*)\}\s+(\S+)(?:\s+\d+)?\s*$")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_RANGE = re.compile(r"(\d+(?:\.\d+)?)(?:-(\d+(?:\.\d+)?))?\s*([KMGT]?)B")
_SCALE = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_NOT_IDENTITY = ("percentile_samples", "timestamp")
_KNOWN = {
    "bus_bandwidth_gbs": "bus",
    "p2p_bus_bandwidth_gbs": "bus",
    "algorithm_bandwidth_gbs": "algorithm",
    "collective_algobw_gbs": "algorithm",
    "collective_count": "count",
    "p2p_count": "count",
}
_TIMES = re.compile(r"(?:collective|p2p)_exec_time_(?:(sum|min|p50|p95|p99|max)_)?microseconds")


@dataclass(slots=True)
class _Series:
    line: int
    labels: dict[str, str]
    values: dict[str, float] = field(default_factory=dict)


def read_metrics(file: SourceFile, prefix: str, imported: Imported) -> Iterator[CollectiveObservation]:
    """The observations of one file; series that cannot be used become bad rows."""
    from_bucket = 0
    for series in _series(file, prefix, imported):
        try:
            observation, exact = _observation(series)
        except ValueError as error:
            imported.bad(f"{prefix}{series.line}" if prefix else series.line, str(error))
            continue
        if observation is None:
            imported.skip("a communicator of one rank")
            continue
        from_bucket += not exact
        yield observation
    if from_bucket:
        what = f"{from_bucket} series name a range of sizes; the size is the one that bandwidth and time show within it"
        imported.flag("size-from-bucket", what)


def _series(file: SourceFile, prefix: str, imported: Imported) -> list[_Series]:
    found: dict[tuple[tuple[str, str], ...], _Series] = {}
    for number, text in file.lines():
        match = _LINE.match(text)
        if match is None:
            continue
        name = _KNOWN.get(match.group(1))
        if name is None:
            time = _TIMES.fullmatch(match.group(1))
            if time is None:
                continue
            name = f"time_{time.group(1) or 'mean'}"
        labels = dict(_LABEL.findall(match.group(2)))
        key = tuple(sorted((label, value) for label, value in labels.items() if label not in _NOT_IDENTITY))
        try:
            value = finite_number(match.group(3))
        except ValueError as error:
            imported.bad(f"{prefix}{number}" if prefix else number, str(error))
            continue
        found.setdefault(key, _Series(number, labels)).values[name] = value
    return list(found.values())


def _observation(series: _Series) -> tuple[CollectiveObservation | None, bool]:
    """The observation and whether its size is exact; None for a group of one.  Raises ValueError."""
    labels, values = series.labels, series.values
    name = labels.get("collective") or labels.get("p2p_operation") or ""
    operation = operation_of(name)
    if operation is None:
        raise ValueError(f"'{name[:40]}' is no collective that is known here")
    pair = "p2p_operation" in labels
    ranks, nodes = _label(labels, "nranks", "n_ranks"), _label(labels, "n_nodes", "nnodes")
    if ranks is None or ranks < 1:
        raise ValueError("the series does not name its ranks")
    if ranks == 1:
        return None, True
    timing = _timing(values)
    mean_s = values.get("time_mean", timing.time_s * 1e6) * 1e-6
    size, exact = _size(labels, values, operation, 2 if pair else ranks, mean_s)
    algorithm, _, protocol = labels.get("algo_proto", "").rpartition("_")
    detail: dict[str, Scalar] = dict(exact_name(name))
    if not exact:
        detail["size_range"] = labels.get("message_size", "")[:40]
    for percentile in ("p95", "p99"):
        if f"time_{percentile}" in values:
            detail[f"{percentile}_s"] = values[f"time_{percentile}"] * 1e-6
    observation = CollectiveObservation(
        operation=operation,
        size_bytes=size,
        group_size=2 if pair else ranks,
        timing=timing,
        num_nodes=(1 if nodes == 1 else None) if pair else nodes,
        devices_per_node=ranks // nodes if nodes and ranks % nodes == 0 and not pair else None,
        launch="in_situ",
        algorithm=algorithm[:20],
        protocol=protocol[:20],
        detail=detail,
        row=series.line,
    )
    return observation, exact


def _timing(values: dict[str, float]) -> Timing:
    """Median where the series has one, else the mean.  Raises ValueError without a time."""
    count = round(values["count"]) if values.get("count", 0) >= 1 else None
    statistic: Statistic = "mean"
    if values.get("time_p50"):
        time_us, statistic = values["time_p50"], "median"
    elif "time_mean" in values:
        time_us = values["time_mean"]
    elif "time_sum" in values and count:
        time_us = values["time_sum"] / count
    else:
        raise ValueError("the series has no time")
    least, most = values.get("time_min"), values.get("time_max")
    return Timing(
        time_us * 1e-6,
        statistic=statistic,
        num_samples=count,
        min_s=least * 1e-6 if least else None,
        max_s=most * 1e-6 if most else None,
    )


def _size(
    labels: dict[str, str], values: dict[str, float], operation: str, ranks: int, mean_s: float
) -> tuple[int, bool]:
    """Bytes of the full tensor and whether they are exact.  Raises ValueError."""
    exact = _label(labels, "coll_msg_size_bytes", "p2p_msg_size_bytes", "message_size_bytes")
    bus = values.get("bus", 0.0)
    factor = bus_factor(operation, ranks)
    traffic = bus / factor * 1e9 * mean_s if bus > 0 and factor > 0 else None
    if exact is not None:
        return full_size_bytes(operation, exact, ranks, traffic), True
    if values.get("algorithm", 0) > 0:
        size = values["algorithm"] * 1e9 * mean_s
        if not size < 2**62:
            raise ValueError(f"{size:g} bytes are more than any tensor has")
        return round(size), True
    match = _RANGE.fullmatch(labels.get("message_size", "").strip())
    if match is None or traffic is None:
        raise ValueError("the series names no size, or has no bandwidth that would tell it")
    low = float(match.group(1)) * _SCALE[match.group(3)]
    high = float(match.group(2) or match.group(1)) * _SCALE[match.group(3)]
    parts = ranks if operation in ("all_gather", "reduce_scatter") else 1
    return round(min(max(traffic / parts, low), high) * parts), False


def _label(labels: dict[str, str], *names: str) -> int | None:
    for name in names:
        text = labels.get(name, "")
        if text.isascii() and text.isdigit() and len(text) <= 15:
            return int(text) or None
    return None
