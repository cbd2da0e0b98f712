"""How does a performance table become observations?  Column by column, without a Python object for each row."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from profiles.device_names import catalogue_device
from profiles.errors import DocumentInvalid
from profiles.importers.aiconfigurator.columns import COLLECTIVE_DTYPES, NOT_DETAIL, TableKind, kinds_of
from profiles.importing.collective_names import operation_of
from profiles.importing.dtype_names import dtype_of, element_bytes
from profiles.importing.imported import Batch, Imported
from profiles.observations.environment import Environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from profiles.importing.source_file import SourceFile

_STATISTIC = "mean"
"""The collectors time a loop of launches between two events."""


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
    path_version = file.path.parent.name
    for environment, rows in _by_environment(table, file, given):
        batch = Batch(environment)
        if collective:
            batch.collective_table = _collectives(rows, environment, imported)
        else:
            tables = [_operators(rows, kind, imported) for kind in kinds]
            batch.operator_table = pa.concat_tables(tables, promote_options="default")
        imported.batches.append(batch)
        if path_version not in ("", environment.framework_version, environment.communication_library_version):
            imported.facts["path_version"] = path_version
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


def _by_environment(table: pa.Table, file: SourceFile, given: Mapping[str, str]) -> list[tuple[Environment, pa.Table]]:
    """Rows by (device, framework, version); a table without those columns is of one environment."""
    # NCCL's tables carry NCCL's own version; their framework column only names who launched it.
    nccl = "nccl_dtype" in table.column_names
    columns = [name for name in ("device", "framework", "version") if name in table.column_names]
    groups = table.select(columns).group_by(columns).aggregate([]).to_pylist() if columns else [{}]
    found: list[tuple[Environment, pa.Table]] = []
    for group in groups:
        rows = table
        for name, value in group.items():
            rows = rows.filter(pc.equal(rows.column(name), pa.scalar(value, rows.column(name).type)))
        reported = str(group.get("device") or "")
        version = str(group.get("version") or "")
        system = file.path.parents[3].name if len(file.path.parents) > 3 else ""
        found.append(
            (
                Environment(
                    device=given.get("device") or catalogue_device(reported) or catalogue_device(system) or "",
                    device_reported=reported,
                    framework=str(group.get("framework") or "").casefold(),
                    framework_version=version,
                    communication_library="nccl" if nccl else "",
                    communication_library_version=(version or file.path.parent.name) if nccl else "",
                    note="inference kernels",
                ),
                rows,
            )
        )
    return found


def _operators(rows: pa.Table, kind: TableKind, imported: Imported) -> pa.Table:
    time_name, scale = kind.time
    seconds = rows.column(time_name).cast(pa.float64()).to_numpy() * scale
    if time_name.endswith("_transmit_us"):
        notify = rows.column(time_name.replace("transmit", "notify")).cast(pa.float64()).to_numpy()
        seconds = seconds + np.nan_to_num(notify) * scale
    rows, seconds = _timed(rows, seconds, imported)
    used = {time_name, kind.dtype, *kind.shape.values()}
    arrays: dict[str, Any] = {
        "operator": _classes(rows, kind),
        "name": _text(rows, "op_name"),
        "phase": _constant("forward", len(seconds)),
        "dtype": _dtypes(rows, kind.dtype),
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
    _decode_lengths(arrays, rows)
    return pa.table(arrays)


def _decode_lengths(arrays: dict[str, Any], rows: pa.Table) -> None:
    """In decode tables ``isl`` is the one new token and ``step`` the keys already in the cache."""
    if arrays["operator"][0:1].to_pylist() == ["decode_attention"] and "step" in rows.column_names:
        arrays["query_length"] = pa.array(np.ones(rows.num_rows, dtype=np.int64))
        arrays["key_length"] = pc.add(rows.column("step").cast(pa.int64()), 1)


def _collectives(rows: pa.Table, environment: Environment, imported: Imported) -> pa.Table:
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
    custom = "nccl_dtype" not in rows.column_names
    return pa.table(
        {
            "operation": pa.array([_operation(name) for name in _text(rows, "op_name").to_pylist()]),
            "size_bytes": pa.array(rows.column("message_size").cast(pa.int64()).to_numpy() * width),
            "group_size": group,
            "devices_per_node": group,
            "num_nodes": pa.array(np.ones(len(seconds), dtype=np.int64)),
            "stride": pa.array(np.ones(len(seconds), dtype=np.int64)),
            "dtype": dtypes,
            "algorithm": _constant("custom" if custom else "", len(seconds)),
            "launch": _constant("graph" if custom else "unknown", len(seconds)),
            "time_s": pa.array(seconds),
            "statistic": _constant(_STATISTIC, len(seconds)),
            "ok": pa.array(np.ones(len(seconds), dtype=bool)),
            "row": rows.column("row"),
            "detail": _details(rows, {"latency"}),
        }
    )


def _operation(name: str) -> str:
    return operation_of(name) or "unknown"


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
        return pa.array([f"expert_{phase}" for phase in _text(rows, "phase").to_pylist()])
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
    texts = [json.dumps({key: value for key, value in row.items() if _says(value)}, sort_keys=True) for row in distinct]
    return pa.DictionaryArray.from_arrays(pa.array(inverse.astype(np.int32)), pa.array(texts)).cast(pa.string())


def _says(value: Any) -> bool:
    """Whether a cell says something: empty, null and NaN do not."""
    return value is not None and value != "" and not (isinstance(value, float) and not np.isfinite(value))
