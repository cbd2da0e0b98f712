"""Observations from a performance table: column by column, without a Python object for each row.

Lengths: prefill rows have ``isl`` new tokens after ``step`` cached ones (keys = isl + step); decode rows have one new
token, and ``isl + step`` keys with it (tables fill one of the two).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from profiles.device_names import catalogue_device
from profiles.errors import DocumentInvalid
from profiles.importers.aiconfigurator.columns import COLLECTIVE_DTYPES, DTYPES, NOT_DETAIL, TableKind, kinds_of
from profiles.importers.aiconfigurator.placement import Placement, placement_of
from profiles.importing.collective_names import operation_of
from profiles.importing.dtype_names import dtype_of, element_bytes
from profiles.importing.imported import Batch, Imported
from profiles.observations.environment import Environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from profiles.importing.source_file import SourceFile

_STATISTIC = "mean"
"""The collectors time a loop of launches between two events."""
_RACK_SCALE = re.compile(r"\bgb[23]00", re.IGNORECASE)
_DEVICES_PER_TRAY, _DEVICES_PER_NODE = 4, 8
_LIBRARIES = {"oneccl": "oneccl", "nccl": "nccl"}
_CLASSES = {"dispatch": "expert_dispatch", "combine": "expert_combine"}


def imported_table(table: pa.Table, file: SourceFile, given: Mapping[str, str]) -> Imported:
    """All rows of one table, one batch for each device and framework version in it."""
    names = set(table.column_names)
    imported = Imported(tool="aiconfigurator", tool_version="")
    table = table.append_column("row", pa.array(np.arange(table.num_rows, dtype=np.int64)))
    table = _without_eager(table, imported)
    collective = {"message_size", "num_gpus", "latency"} <= names
    kinds = [] if collective else kinds_of(names)
    if not collective and not kinds:
        raise DocumentInvalid(
            f"a Parquet table with the columns {', '.join(table.column_names[:12])} is not a known performance table",
            where=file.where,
            hint="AIConfigurator tables have latency, op_name and sizes such as m, n, k",
        )
    placement = placement_of(file.path)
    for environment, rows in _by_environment(table, placement, given):
        batch = Batch(environment)
        if collective:
            batch.collective_table = _collectives(rows, environment, imported)
        else:
            tables = [_operators(rows, kind, imported) for kind in kinds]
            batch.operator_table = pa.concat_tables(tables, promote_options="default")
        imported.batches.append(batch)
        if placement.version not in ("", environment.framework_version, environment.communication_library_version):
            imported.facts["path_version"] = placement.version
    if not imported.num_observations:
        raise DocumentInvalid("no row of the table can be used", where=file.where, hint=_left_out(imported))
    return imported


def _left_out(imported: Imported) -> str:
    return "left out: " + (", ".join(f"{count} {reason}" for reason, count in imported.skipped.items()) or "no rows")


def _without_eager(table: pa.Table, imported: Imported) -> pa.Table:
    """Rows timed in eager mode hold Python's launch time; a CUDA graph twin of each exists."""
    keep = np.ones(table.num_rows, dtype=bool)
    for name in ("kernel_source", "backend", "implementation"):
        if name in table.column_names:
            text = table.column(name).cast(pa.string())
            keep &= ~pc.fill_null(pc.ends_with(text, "_eager"), False).to_numpy(zero_copy_only=False)
    if not keep.all():
        imported.skip("timed in eager mode", int((~keep).sum()))
        table = table.filter(pa.array(keep))
    return table


def _by_environment(
    table: pa.Table, placement: Placement, given: Mapping[str, str]
) -> list[tuple[Environment, pa.Table]]:
    """Rows by (device, framework, version); a table without those columns is of one environment."""
    columns = [name for name in ("device", "framework", "version") if name in table.column_names]
    groups = table.select(columns).group_by(columns).aggregate([]).to_pylist() if columns else [{}]
    library = _library(table) if "nccl_dtype" in table.column_names else ""
    found: list[tuple[Environment, pa.Table]] = []
    for group in groups:
        rows = table
        for name, value in group.items():
            column = rows.column(name)
            rows = rows.filter(pc.is_null(column) if value is None else pc.equal(column, pa.scalar(value, column.type)))
        reported = str(group.get("device") or "")
        version = str(group.get("version") or "")
        # The framework column of a library's own benchmark only names who launched it.
        environment = Environment(
            device=given.get("device") or catalogue_device(reported) or catalogue_device(placement.system) or "",
            device_reported=reported,
            framework="" if library else str(group.get("framework") or "").casefold(),
            framework_version="" if library else version,
            communication_library=library,
            communication_library_version=(version or placement.version) if library else "",
            note="inference kernels",
        )
        found.append((environment, rows))
    return found


def _library(table: pa.Table) -> str:
    """Which library's own benchmark it was: the ``kernel_source`` names it."""
    sources = {str(name).casefold() for name in pc.unique(_text(table, "kernel_source")).to_pylist()}
    return next((_LIBRARIES[name] for name in sources if name in _LIBRARIES), "")


def _operators(rows: pa.Table, kind: TableKind, imported: Imported) -> pa.Table:
    time_name, scale = kind.time
    seconds = rows.column(time_name).cast(pa.float64()).to_numpy() * scale
    if time_name.endswith("_transmit_us"):
        notify = rows.column(time_name.replace("transmit", "notify")).cast(pa.float64()).to_numpy()
        seconds = seconds + np.nan_to_num(notify) * scale
    rows, seconds = _timed(rows, seconds, imported)
    dtype = kind.dtype or next((name for name in DTYPES if name in rows.column_names), "")
    used = {time_name, dtype, *kind.shape.values(), *_of_the_other_half(kind, rows)}
    if "isl" in rows.column_names:
        used |= {"isl", "step"}
    arrays: dict[str, Any] = {
        "operator": _classes(rows, kind),
        "name": _text(rows, "op_name"),
        "phase": _constant("forward", len(seconds)),
        "dtype": _dtypes(rows, dtype),
        "time_s": pa.array(seconds),
        "statistic": _constant(_STATISTIC, len(seconds)),
        "ok": pa.array(np.ones(len(seconds), dtype=bool)),
        "row": rows.column("row"),
        "detail": _details(rows, used),
    }
    if kind.causal is not None:
        arrays["causal"] = pa.array(np.full(len(seconds), kind.causal))
    for ours, theirs in kind.shape.items():
        if theirs in rows.column_names and pa.types.is_integer(rows.column(theirs).type):
            arrays[ours] = rows.column(theirs).cast(pa.int64())
    _lengths(arrays, rows)
    return pa.table(arrays)


def _lengths(arrays: dict[str, Any], rows: pa.Table) -> None:
    """New tokens and keys of every row, see the head of this file."""
    if "isl" not in rows.column_names or not pa.types.is_integer(rows.column("isl").type):
        return
    new = rows.column("isl").cast(pa.int64()).to_numpy()
    cached = np.zeros_like(new)
    if "step" in rows.column_names and pa.types.is_integer(rows.column("step").type):
        cached = rows.column("step").cast(pa.int64()).to_numpy()
    decode = np.array(["generation" in name for name in _text(rows, "op_name").to_pylist()], dtype=bool)
    arrays["query_length"] = pa.array(np.where(decode, 1, new))
    arrays["key_length"] = pa.array(new + cached)


def _of_the_other_half(kind: TableKind, rows: pa.Table) -> set[str]:
    """Columns about combining in a row of dispatching, and the other way round."""
    halves = {"expert_dispatch": "combine_", "expert_combine": "dispatch_"}
    other = halves.get(kind.operator, "")
    ours = kind.time[0].rpartition("_transmit_us")[0]
    times = {f"{ours}_notify_us"} if ours else set()
    return times | {name for name in rows.column_names if other and name.startswith(other)}


def _collectives(rows: pa.Table, environment: Environment, imported: Imported) -> pa.Table:
    rows = _sized(rows, imported)
    seconds = rows.column("latency").cast(pa.float64()).to_numpy() * 1e-3
    rows, seconds = _timed(rows, seconds, imported)
    dtype_column = next((name for name in COLLECTIVE_DTYPES if name in rows.column_names), "")
    dtypes = _dtypes(rows, dtype_column)
    widths = {name: element_bytes(name) for name in set(pc.unique(dtypes).to_pylist())}
    unknown = [name for name, width in widths.items() if width is None]
    if unknown:
        raise DocumentInvalid(
            f"message_size counts elements of {unknown[0] or 'an unnamed type'}, whose size is not known",
            hint="the dtype column must name a number format such as half or bfloat16",
        )
    width = np.array([widths[name] for name in dtypes.to_pylist()], dtype=np.int64)
    group = rows.column("num_gpus").cast(pa.int64())
    one_node = _within_a_node(group.to_numpy(), environment)
    custom = "nccl_dtype" not in rows.column_names
    return pa.table(
        {
            "operation": pa.array([_operation(name) for name in _text(rows, "op_name").to_pylist()]),
            "size_bytes": pa.array(rows.column("message_size").cast(pa.int64()).to_numpy() * width),
            "group_size": group,
            "devices_per_node": pa.array(group.to_numpy(), mask=~one_node),
            "num_nodes": pa.array(np.ones(len(seconds), dtype=np.int64), mask=~one_node),
            "stride": pa.array(np.ones(len(seconds), dtype=np.int64)),
            "dtype": dtypes,
            "algorithm": _constant("custom" if custom else "", len(seconds)),
            "launch": _launches(rows),
            "time_s": pa.array(seconds),
            "statistic": _constant(_STATISTIC, len(seconds)),
            "ok": pa.array(np.ones(len(seconds), dtype=bool)),
            "row": rows.column("row"),
            "detail": _details(rows, {"latency"}),
        }
    )


def _launches(rows: pa.Table) -> pa.Array:
    """How each row was launched: the vLLM and SGLang collectors say so at the end of ``kernel_source``."""
    names = _text(rows, "kernel_source").to_pylist()
    return pa.array(["graph" if name.endswith("_graph") else "unknown" for name in names], pa.string())


def _within_a_node(group: Any, environment: Environment) -> Any:
    """Groups that one node holds for certain: trays of GB200 and GB300 hold four devices."""
    rack = _RACK_SCALE.search(environment.device) or _RACK_SCALE.search(environment.device_reported)
    return group <= (_DEVICES_PER_TRAY if rack else _DEVICES_PER_NODE)


def _operation(name: str) -> str:
    return operation_of(name) or "unknown"


def _sized(rows: pa.Table, imported: Imported) -> pa.Table:
    """Rows with a possible size and number of devices; the others are bad."""
    good = np.ones(rows.num_rows, dtype=bool)
    for name, least, most in (("message_size", 0, 2**58), ("num_gpus", 1, 2**31)):
        values = rows.column(name).cast(pa.float64(), safe=False).to_numpy()
        good &= (values >= least) & (values < most)
    for index in rows.column("row").to_numpy()[~good][:1000]:
        imported.bad(f"row {index}", "message_size or num_gpus is no possible number", "remove the row")
    return rows if good.all() else rows.filter(pa.array(good))


def _timed(rows: pa.Table, seconds: Any, imported: Imported) -> tuple[pa.Table, Any]:
    """Rows with a finite positive time.  Zeros stand for "does not apply here" and are left out; the rest is bad."""
    good = np.isfinite(seconds) & (seconds > 0)
    zero = seconds == 0
    if zero.any():
        imported.skip("time given as zero", int(zero.sum()))
    for index in rows.column("row").to_numpy()[~good & ~zero][:1000]:
        imported.bad(f"row {index}", "the time is not a positive number", "remove the row or repair its latency")
    return (rows, seconds) if good.all() else (rows.filter(pa.array(good)), seconds[good])


def _classes(rows: pa.Table, kind: TableKind) -> pa.Array:
    if kind.operator == "attention":
        names = _text(rows, "op_name").to_pylist()
        return pa.array(["decode_attention" if "generation" in name else "attention" for name in names])
    if "phase" in rows.column_names and kind.operator == "expert_dispatch":
        return pa.array([_CLASSES.get(phase, "other") for phase in _text(rows, "phase").to_pylist()])
    if kind.operator == "module":
        parts = [name.split("_") for name in _text(rows, "op_name").to_pylist()]
        return pa.array([next((_CLASSES[part] for part in name if part in _CLASSES), "module") for name in parts])
    return _constant(kind.operator, rows.num_rows)


def _dtypes(rows: pa.Table, column: str) -> pa.Array:
    if column not in rows.column_names:
        return _constant("", rows.num_rows)
    encoded = rows.column(column).cast(pa.string()).combine_chunks().dictionary_encode()
    names = [dtype_of(name or "") for name in encoded.dictionary.to_pylist()]
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(names)).cast(pa.string())


def _text(rows: pa.Table, column: str) -> pa.Array:
    if column not in rows.column_names:
        return _constant("", rows.num_rows)
    return pc.fill_null(rows.column(column).cast(pa.string()), "").combine_chunks()


def _constant(text: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, dtype=np.int32)), pa.array([text])).cast(pa.string())


def _details(rows: pa.Table, used: set[str]) -> pa.Array:
    """JSON text of all other columns: built once for each distinct combination, then spread over the rows."""
    names = [name for name in rows.column_names if name not in used | NOT_DETAIL and name != "row"]
    if not names or not rows.num_rows:
        return _constant("", rows.num_rows)
    code = np.zeros(rows.num_rows, dtype=np.int64)
    for name in names:
        encoded = rows.column(name).combine_chunks().dictionary_encode()
        indices = pc.fill_null(encoded.indices, len(encoded.dictionary)).to_numpy(zero_copy_only=False)
        _, code = np.unique(code * (len(encoded.dictionary) + 1) + indices, return_inverse=True)
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    distinct = rows.select(names).take(pa.array(first)).to_pylist()
    texts = [
        json.dumps({key: value for key, value in row.items() if _says(value)}, sort_keys=True, default=str)
        for row in distinct
    ]
    return pa.DictionaryArray.from_arrays(pa.array(inverse.astype(np.int32)), pa.array(texts)).cast(pa.string())


def _says(value: Any) -> bool:
    """Whether a cell says something: empty, null and NaN do not."""
    return value is not None and value != "" and not (isinstance(value, float) and not np.isfinite(value))
