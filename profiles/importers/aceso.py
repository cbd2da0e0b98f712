"""Aceso's operator profiles: one CSV of a model's operators for one micro-batch, tensor-parallel degree and algorithm.

Recognised by ``op_name, forward-compute, backward-compute, input_size, output_size, weights, activations``.  Times in
microseconds (mean of repetitions); sizes in MB of 2^20 bytes (``DATA_BASE = bytes / (1024 * 1024)``); ``fwd_reserved``
and ``bwd_reserved`` are what the allocator reserved meanwhile.  ``weights`` and ``activations`` are those of one
shard.  Model, micro-batch and degree stand in the file's name (``gpt_1_3B_mbs1_tp1_algo0.csv``) only.

Source: microsoft/SuperScaler (branch Aceso) profiler/op_profiler.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from profiles.importing.csv_rows import CsvRow, head_rows, open_csv
from profiles.importing.dtype_names import dtype_of
from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.source_file import Head, SourceFile
from profiles.observations.records import OperatorObservation, Phase, Scalar
from profiles.observations.timing import Timing

_COLUMNS = ("op_name", "forward-compute", "backward-compute", "weights", "activations")
_NAME = re.compile(r"(?P<model>.+?)_mbs(?P<batch>\d{1,6})_tp(?P<tp>\d{1,5})_algo(?P<algo>\d{1,3})")
_MB = 2**20
_CLASSES = (
    (r"embedding", "embedding"),
    (r"layernorm|^bn|[-_]bn", "norm"),
    (r"softmax", "softmax"),
    (r"dropout", "dropout"),
    (r"gelu|relu", "activation"),
    (r"qkv|gemm|dense|score|context|^fc", "matmul"),
    (r"conv|downsample", "convolution"),
)


def _matches(head: Head) -> bool:
    rows = head_rows(head)
    return bool(rows) and all(name in rows[0] for name in _COLUMNS)


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("aceso")
    batches = Batches()
    for file in files:
        batch = batches.of(environment_of(options, framework="megatron-lm"))
        detail, shape = _of_name(file.name, options, imported)
        for row in open_csv(file, required=_COLUMNS).rows(imported):
            try:
                batch.operators += _operators(row, detail, shape, options, imported)
            except ValueError as error:
                imported.bad(row.line, str(error), "is the row cut off?")
    return finished(imported, batches, files[0], "no row holds an operator with a time", "check that it is complete")


def _of_name(name: str, options: ReadOptions, imported: Imported) -> tuple[dict[str, Scalar], dict[str, int]]:
    """What the file's name or the user says: detail and shape."""
    match = _NAME.search(name)
    if match is None:
        imported.flag(
            "name-lost", "model, micro-batch and degree stood in the file's name; --set model=.. adds the model"
        )
        return ({"model": options.given["model"]} if "model" in options.given else {}), {}
    detail: dict[str, Scalar] = {
        "model": options.given.get("model", match["model"][:60]),
        "algorithm": int(match["algo"]),
    }
    return detail, {"batch_size": int(match["batch"]), "tensor_parallel": int(match["tp"])}


def _operators(
    row: CsvRow, detail: dict[str, Scalar], shape: dict[str, int], options: ReadOptions, imported: Imported
) -> list[OperatorObservation]:
    """Forward and backward of one row.  Raises ValueError."""
    name = row["op_name"]
    if not name:
        raise ValueError("column 'op_name' is empty")
    operator = next((kind for pattern, kind in _CLASSES if re.search(pattern, name.casefold())), "module")
    weights, activations = _bytes(row, "weights"), _bytes(row, "activations")
    found: list[OperatorObservation] = []
    columns: tuple[tuple[Phase, str, str], ...] = (
        ("forward", "forward-compute", "fwd_reserved"),
        ("backward", "backward-compute", "bwd_reserved"),
    )
    for phase, column, reserved in columns:
        time_us = row.number(column)
        if time_us == 0:
            imported.skip("phase with a time of zero: it was not measured")
            continue
        sizes: dict[str, Scalar] = {
            f"{key}_bytes": _bytes(row, key) for key in ("input_size", "output_size") if row[key]
        }
        if row[reserved]:
            sizes["reserved_bytes"] = _bytes(row, reserved)
        found.append(
            OperatorObservation(
                operator,
                name,
                Timing(time_us * 1e-6, "mean"),
                phase=phase,
                shape=shape,
                weights_bytes=weights,
                dtype=dtype_of(options.given.get("dtype", "")),
                activation_bytes=activations,
                detail={**detail, **sizes},
                row=row.line,
            )
        )
    return found


def _bytes(row: CsvRow, column: str) -> int:
    amount = row.number(column)
    if not 0 <= amount < 1e9:
        raise ValueError(f"column '{column}': {amount} MB is no size")
    return round(amount * _MB)


FORMAT = Format("aceso", "Aceso operator profiles (CSV)", _matches, _read)
