"""nnScaler's operator profiles: one JSON an operator (``torch.matmul.json``), keyed by shapes, types and gradients.

Recognised by ``"fw_span"`` and ``"in_mem_info"``.  Key: ``(2, 8, 128, 64)-(..)-(..) : torch.float32-.. : True-..``:
the inputs, then the outputs.  ``fw_span`` and ``bw_span`` are milliseconds (means; the backward one is forward-plus-
backward less forward, so a zero means noise and is left out).  Memory in bytes: parameters, and what training keeps
for the backward pass.  Older files nest all operators (``{"torch.add": {key: ...}}``) or hold lists instead of objects
(inputs, parameters, [buffers,] forward, backward, inference, training).  The operator's name is the file's name.

Source: microsoft/nnscaler nnscaler/profiler/database.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from profiles.errors import DocumentInvalid
from profiles.importing.environments import Batches, environment_of, finished
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.number_cells import json_number, json_whole, shown, whole_number
from profiles.importing.source_file import Head, SourceFile
from profiles.importing.torch_operators import operator_rule, point_wise
from profiles.importing.torch_shapes import call_shape, free_shape
from profiles.observations.records import OperatorObservation, Phase
from profiles.observations.timing import Timing
from profiles.safe_json import load_json_text

_SHAPE = re.compile(r"\(([\d, ]*)\)")
_OBJECT = re.compile(r'"fw_span"\s*:')
_LIST_KEY = re.compile(r'"\([\d, ]*\)(?:-\([\d, ]*\))* : torch\.\w+')


def _matches(head: Head) -> bool:
    text = head.text
    if text.lstrip()[:1] != "{":
        return False
    return bool(_LIST_KEY.search(text)) or (bool(_OBJECT.search(text)) and '"in_mem_info"' in text)


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    imported = Imported("nnscaler")
    batches = Batches()
    for file in files:
        data = load_json_text(file.text(), file.where)
        if not isinstance(data, dict):
            raise DocumentInvalid("the document is no JSON object", where=file.where, hint="give a comp/*.json file")
        batch = batches.of(environment_of(options, framework="torch", num_devices=1))
        for key, entry in data.items():
            if str(key).startswith("("):
                name = options.given.get("operation") or file.name.removesuffix(".json").removeprefix("comp_")
                _take(name[:120], str(key), entry, batch, imported)
            elif isinstance(entry, dict):
                for inner, value in entry.items():
                    _take(str(key)[:120], str(inner), value, batch, imported)
            else:
                imported.bad(f"#/{str(key)[:60]}", "this is neither a shape nor an operator", "is the file another?")
    return finished(imported, batches, files[0], "there is no operator with a time", "check that it is complete")


def _take(name: str, key: str, entry: Any, batch: Batch, imported: Imported) -> None:
    row = batch.num_observations
    try:
        shapes, types = _key(key)
        forward_ms, backward_ms, parameters, kept = _entry(entry)
        rule = operator_rule(f"aten::{name.rpartition('.')[2]}")
        call = call_shape(rule, shapes, types, []) if rule else free_shape(shapes[:1], types[:1])
        operator = rule.operator if rule else ("elementwise" if point_wise(name.rpartition(".")[2]) else "other")
        phases: list[tuple[Phase, float]] = [("forward", forward_ms), ("backward", backward_ms)]
        for phase, time_ms in phases:
            if time_ms == 0:
                imported.skip(f"{phase} pass with a time of zero: none, or lost in noise")
                continue
            batch.operators.append(
                OperatorObservation(
                    operator,
                    name,
                    Timing(time_ms * 1e-3, "mean"),
                    phase=phase,
                    dtype=call.dtype,
                    shape=call.shape,
                    causal=call.causal,
                    weights_bytes=parameters,
                    activation_bytes=kept,
                    detail=dict(call.detail),
                    row=row,
                )
            )
    except ValueError as error:
        imported.bad(f"#/{key[:80]}", str(error), "profile this shape again")


def _key(key: str) -> tuple[list[list[int]], list[str]]:
    """Shapes and types of a key.  Raises ValueError."""
    parts = key.split(" : ")
    if len(parts) < 2 or len(key) > 20_000:
        raise ValueError(f"{shown(key)} is not 'shapes : types : gradients'")
    shapes = [[whole_number(size) for size in body.split(",") if size.strip()] for body in _SHAPE.findall(parts[0])]
    return shapes, parts[1].split("-")


def _entry(entry: Any) -> tuple[float, float, int, int]:
    """Forward and backward in ms, bytes of parameters and of what training keeps.  Raises ValueError."""
    if isinstance(entry, list):
        first = next((index for index, value in enumerate(entry) if isinstance(value, float)), None)
        if first is None or first + 1 >= len(entry):
            raise ValueError("the list holds no forward and backward time")
        kept = entry[first + 3] if len(entry) > first + 3 else []
        return json_number(entry[first]), json_number(entry[first + 1]), _sum(entry[1]), _sum(kept)
    if not isinstance(entry, dict) or "fw_span" not in entry:
        raise ValueError("the entry has no fw_span")
    return (
        json_number(entry["fw_span"]),
        json_number(entry.get("bw_span", 0.0)),
        _sum(entry.get("param_mem_info", [])),
        _sum(entry.get("train_mem_info", [])),
    )


def _sum(sizes: Any) -> int:
    return sum(json_whole(size) for size in sizes) if isinstance(sizes, list) else json_whole(sizes)


FORMAT = Format("nnscaler-comp", "nnScaler operator profiles (comp/*.json)", _matches, _read)
