"""XProf tables of a TPU run: ``op_profile.json`` and ``pod_viewer.json``; collective tables of TraceLens are refused.

Recognised by ``byCategory`` / ``byProgram`` with ``metrics``, by ``podStatsSequence``, or by TraceLens's CSV header.

- ``op_profile``: a tree of operations.  Newer files give ``rawTime`` (picoseconds over all occurrences) and
  ``occurrences``, also ``avgTimePs``; older ones give shares of the total only and are refused: a share is no time.
  Equal operations stand as one (``and its duplicate(s)``, the mean of all), idle time is none, and the tables keep the
  longest operations of each kind only: flag ``tree-cut``.  ``deviceType`` names the device.
- ``pod_viewer``: for each step the all-reduces (bytes, mean microseconds over ``occurrences``), the transfers between
  cores, and the time of the step on every core.  Durations include waiting.  64-bit integers are strings in this JSON.
- TraceLens's JAX collective CSV does not say whether ``data(bytes)`` is the shard of one rank or the full tensor, and
  its time stamps come from clocks of different nodes: refused.
Source: openxla/xprof plugin/xprof/protobuf (op_profile.proto, pod_stats.proto) and demo data; AMD-AGI/TraceLens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from profiles.errors import DocumentInvalid
from profiles.importing.csv_rows import head_rows
from profiles.importing.environments import environment_of
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.json_document import decode_json
from profiles.importing.source_file import Head, SourceFile
from profiles.importing.xla_operations import Operation, operator_class
from profiles.observations.records import CollectiveObservation, IterationObservation, OperatorObservation, Scalar
from profiles.observations.timing import Timing

_TREES = ("byCategory", "byProgram", "by_category", "by_program")
_MARK = re.compile(r'"(?:byCategory|byProgram|by_category|by_program|podStatsSequence|pod_stats_sequence)"\s*:')
_TRACELENS = {"gpu_rank", "collective_name", "replica_groups", "data(bytes)"}
_MAX_BYTES = 512 << 20
_LONGEST_NAME = 200
_LONGEST_TEXT = 300
_PARTS = {
    "crsDurationUs": "all_reduce_s", "sendDurationUs": "send_s", "recvDurationUs": "receive_s",
    "hostInfeedDurationUs": "infeed_s", "hostOutfeedDurationUs": "outfeed_s", "highFlopsComputeUs": "high_flops_s",
}  # fmt: skip


def matches(head: Head) -> bool:
    """Whether it is one of the three."""
    if head.text.lstrip().startswith("{"):
        return bool(_MARK.search(head.text[:65536])) and ("metrics" in head.text or "podStats" in head.text)
    rows = head_rows(head)
    return bool(rows) and set(rows[0]) >= _TRACELENS


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """One table.  Raises DocumentInvalid where it has no times."""
    file = files[0]
    if not file.head().text.lstrip().startswith("{"):
        raise DocumentInvalid(
            "a collective table of TraceLens does not say whether its sizes are those of one rank's shard or of the "
            "full tensor",
            where=file.where,
            hint="import the xplane.pb or the trace from which the table was made",
        )
    document = decode_json(file, dict, _MAX_BYTES)
    imported = Imported(tool="xprof")
    if "podStatsSequence" in document:
        _read_pod_viewer(document, imported, options)
    else:
        device = document.get("deviceType", document.get("device_type"))
        known = device[:80] if isinstance(device, str) and device.upper() not in ("CPU", "GPU", "TPU") else ""
        imported.batches = [Batch(environment_of(options, known))]
        _read_op_profile(document, imported.batches[0], imported, file)
    if not imported.num_observations:
        found = imported.bad_rows[0].what if imported.bad_rows else "no operation and no step has a time"
        raise DocumentInvalid(f"nothing to import: {found}", where=file.where, hint="import the xplane.pb of the run")
    if not imported.batches[0].environment.device:
        imported.flag("device-unknown", "the file does not name the device; give it with --set device=NAME")
    return imported


def _read_op_profile(document: dict[str, Any], batch: Batch, imported: Imported, file: SourceFile) -> None:
    tree = next((document[name] for name in _TREES if isinstance(document.get(name), dict)), None)
    shares = 0
    if _is_cut(tree):
        imported.flag("tree-cut", "only the longest operations of each kind are in the table; the xplane.pb has all")
    for node, pointer in _leaves(tree):
        metrics, xla = node.get("metrics"), node.get("xla")
        metrics = metrics if isinstance(metrics, dict) else {}
        xla = xla if isinstance(xla, dict) else {}
        metrics = {_camel_case(key): value for key, value in metrics.items()}
        if not metrics.keys() & {"rawTime", "avgTimePs", "avgTimeUs"}:
            shares += "time" in metrics
            continue
        if xla.get("category") == "IDLE" or node.get("name") == "IDLE":
            imported.skip("idle time")
            continue
        if metrics.get("occurrences") == 0 and not metrics.get("rawTime"):
            imported.skip("operations that never ran")
            continue
        try:
            batch.operators.append(_operator(node, metrics, xla))
        except ValueError as error:
            imported.bad(pointer, str(error))
    if shares and not batch.operators:
        raise DocumentInvalid(
            f"{shares} operations have only shares of an unknown total, no times",
            where=file.where,
            hint="export with a newer XProf (it adds rawTime and occurrences), or import the xplane.pb",
        )


def _operator(node: dict[str, Any], metrics: dict[str, Any], xla: dict[str, Any]) -> OperatorObservation:
    name = str(node.get("name", "")).lstrip("%")
    if not name:
        raise ValueError("the operation has no name")
    count = round(_number(metrics, "occurrences")) if "occurrences" in metrics else None
    if "avgTimeUs" in metrics:
        time_s = _number(metrics, "avgTimeUs") / 1e6
    elif count and "rawTime" in metrics:
        time_s = _number(metrics, "rawTime") / count / 1e12
    elif "avgTimePs" in metrics:
        time_s = _number(metrics, "avgTimePs") / 1e12
    else:
        raise ValueError("rawTime is a sum over an unknown number of occurrences")
    text = str(xla.get("expression", ""))
    category = str(xla.get("category", ""))
    detail: dict[str, Scalar] = {}
    if category:
        detail["category"] = category[:_LONGEST_NAME]
    if text:
        detail["instruction"] = text[:_LONGEST_TEXT]
    operation = Operation(name=name, category=category, text=text[:20_000])
    return OperatorObservation(
        operator=operator_class(operation),
        name=name[:_LONGEST_NAME],
        timing=Timing(time_s, statistic="single" if count == 1 else "mean", num_samples=count or None),
        detail=detail,
    )


def _leaves(tree: object) -> Iterator[tuple[dict[str, Any], str]]:
    """Operations: nodes with ``xla``, without their parts (what a fusion is made of)."""
    stack: list[tuple[object, str]] = [(tree, "#")]
    while stack:
        node, pointer = stack.pop()
        if not isinstance(node, dict):
            continue
        if isinstance(node.get("xla"), dict):
            yield node, pointer
            continue
        children = node.get("children")
        if isinstance(children, list):
            found = [(child, f"{pointer}/children/{index}") for index, child in enumerate(children)]
            stack.extend(reversed(found))


def _is_cut(tree: object) -> bool:
    """Whether a node above the operations had more children than it lists."""
    stack = [tree]
    while stack:
        node = stack.pop()
        if not isinstance(node, dict) or isinstance(node.get("xla"), dict):
            continue
        children = node.get("children")
        children = children if isinstance(children, list) else []
        count = node.get("numChildren", node.get("num_children"))
        if isinstance(count, int) and count > len(children) > 0:
            return True
        stack.extend(children)
    return False


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


def _read_pod_viewer(document: dict[str, Any], imported: Imported, options: ReadOptions) -> None:
    run = document.get("runEnvironment")
    run = run if isinstance(run, dict) else {}
    known: dict[str, Any] = {}
    for field, name in (("num_devices", "tpuCoreCount"), ("num_nodes", "hostCount")):
        value = run.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            known[field] = value
    device = run.get("tpuType")
    batch = Batch(environment_of(options, device[:80] if isinstance(device, str) else "", **known))
    imported.batches = [batch]
    sequence = document["podStatsSequence"]
    steps = sequence.get("podStatsMap") if isinstance(sequence, dict) else None
    for index, step in enumerate(steps if isinstance(steps, list) else []):
        if isinstance(step, dict):
            _read_step(step, f"#/podStatsSequence/podStatsMap/{index}", batch, imported, known.get("num_devices"))
    if batch.collectives:
        imported.flag("waiting-included", "durations of collectives include waiting for the other cores")


def _read_step(step: dict[str, Any], pointer: str, batch: Batch, imported: Imported, num_devices: int | None) -> None:
    for table, operation in (("allReduceOpDb", "all_reduce"), ("channelDb", "send_recv")):
        rows = step.get(table)
        for index, row in enumerate(rows if isinstance(rows, list) else []):
            try:
                batch.collectives.append(_collective(row, operation))
            except (ValueError, TypeError) as error:
                imported.bad(f"{pointer}/{table}/{index}", str(error)[:200])
    cores = step.get("podStatsPerCore")
    for core, row in (cores if isinstance(cores, dict) else {}).items():
        try:
            batch.iterations.append(_iteration(row, str(core), num_devices))
        except (ValueError, TypeError) as error:
            imported.bad(f"{pointer}/podStatsPerCore/{str(core)[:20]}", str(error)[:200])


def _collective(row: object, operation: str) -> CollectiveObservation:
    if not isinstance(row, dict):
        raise ValueError("the entry is not an object")
    name = str(row.get("name", ""))[:_LONGEST_NAME]
    if operation == "all_reduce" and not name.startswith("all-reduce"):
        raise ValueError(f"'{name[:40]}' is no all-reduce: its size convention is not known")
    count = round(_number(row, "occurrences"))
    detail: dict[str, Scalar] = {"name": name} if name else {}
    for key, label in (("srcCoreId", "source_core"), ("dstCoreId", "target_core")):
        if operation == "send_recv" and key in row:
            detail[label] = round(_number(row, key))
    return CollectiveObservation(
        operation="all_reduce" if operation == "all_reduce" else "send_recv",
        size_bytes=round(_number(row, "dataSize")),
        group_size=2 if operation == "send_recv" else None,
        timing=Timing(_number(row, "durationUs") / 1e6, "single" if count == 1 else "mean", count),
        launch="in_situ",
        detail=detail,
    )


def _iteration(row: object, core: str, num_devices: int | None) -> IterationObservation:
    if not isinstance(row, dict):
        raise ValueError("the entry is not an object")
    detail: dict[str, Scalar] = {"core": core[:20]}
    for key, label in _PARTS.items():
        if key in row:
            detail[label] = _number(row, key) / 1e6
    return IterationObservation(
        timing=Timing(_number(row, "totalDurationUs") / 1e6, statistic="single", num_samples=1),
        iteration=round(_number(row, "stepNum")) if "stepNum" in row else None,
        num_devices=num_devices,
        detail=detail,
    )


def _number(row: dict[str, Any], name: str) -> float:
    """A number, also where it is written as a string of digits.  Raises ValueError."""
    value = row.get(name)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**61:
        raise ValueError(f"'{name}' is no number from 0")
    return float(value)


FORMAT = Format("xprof-op-profile", "XProf tables (op_profile, pod_viewer)", matches, read)
