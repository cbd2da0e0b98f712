"""The file of a measured profile, which ``profile import`` reads back: one JSON document.

    {"format": "meshwright-measure", "schema_version": 1, "tool_version": "...",
     "facts": {...}, "flags": [{code, what}], "skipped": {"reason": count},
     "batches": [{"environment": {...}, "operators": [...], "collectives": [...], "links": [...]}]}

Observations are written without the fields that have their default value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from profiles.importing.imported import Batch, Imported
from profiles.observations.records import (
    CollectiveObservation,
    IterationObservation,
    LinkObservation,
    Observation,
    OperatorObservation,
)

FORMAT_NAME = "meshwright-measure"
SCHEMA_VERSION = 1
Kind = Literal["operators", "collectives", "links", "iterations"]
TYPES: dict[Kind, type[Observation]] = {
    "operators": OperatorObservation,
    "collectives": CollectiveObservation,
    "links": LinkObservation,
    "iterations": IterationObservation,
}


def kind_of(observation: Observation) -> Kind:
    """The list of a batch that an observation belongs to."""
    return next(kind for kind, its_type in TYPES.items() if isinstance(observation, its_type))


def observation_data(observation: Observation) -> dict[str, Any]:
    """Plain JSON data of one observation, without defaults."""
    return _data(observation)


def observation_of(kind: Kind, data: Any) -> Observation:
    """The observation that plain data stands for.  Raises ValueError with what is wrong."""
    its_type = TYPES[kind]
    if not isinstance(data, dict):
        raise ValueError("an observation is a JSON object")
    unknown = set(data) - {each.name for each in fields(its_type)}
    if unknown:
        raise ValueError(f"unknown field '{min(unknown)}'")
    try:
        # Strict JSON: the text "5" is no number, and true is no count.
        found: Observation = _adapter(kind).validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{place}: {first['msg']}" if place else str(first["msg"])) from None
    return found


def document_of(imported: Imported) -> dict[str, Any]:
    """The whole document."""
    return {
        "format": FORMAT_NAME,
        "schema_version": SCHEMA_VERSION,
        "tool_version": imported.tool_version,
        "facts": imported.facts,
        "flags": [{"code": flag.code, "what": flag.what} for flag in imported.flags],
        "skipped": imported.skipped,
        "batches": [_batch_data(batch) for batch in imported.batches],
    }


def document_text(imported: Imported) -> str:
    """The document as JSON text, one observation a line, so that a diff shows what changed."""
    return "".join(_lines(document_of(imported)))


def _lines(document: dict[str, Any]) -> Iterator[str]:
    yield "{\n"
    for name, value in document.items():
        if name != "batches":
            yield f' "{name}": {json.dumps(value, sort_keys=True, allow_nan=False)},\n'
    yield ' "batches": [\n'
    yield ",\n".join(_batch_text(batch) for batch in document["batches"])
    yield "\n ]\n}\n"


def _batch_text(batch: dict[str, Any]) -> str:
    parts = []
    for name, value in batch.items():
        if name == "environment":
            parts.append(f'   "{name}": {json.dumps(value, allow_nan=False)}')
        else:
            rows = ",\n".join(f"    {json.dumps(row, allow_nan=False)}" for row in value)
            parts.append(f'   "{name}": [\n{rows}\n   ]')
    return "  {\n" + ",\n".join(parts) + "\n  }"


def _batch_data(batch: Batch) -> dict[str, Any]:
    data: dict[str, Any] = {"environment": batch.environment.model_dump(mode="json", exclude_defaults=True)}
    rows: dict[Kind, Iterable[Observation]] = {
        "operators": batch.operators,
        "collectives": batch.collectives,
        "links": batch.links,
        "iterations": batch.iterations,
    }
    return data | {name: [observation_data(row) for row in found] for name, found in rows.items() if found}


def _data(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in fields(value):
        part = getattr(value, each.name)
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        if part != default or default is MISSING:
            found[each.name] = _data(part) if is_dataclass(part) and not isinstance(part, type) else part
    return found


@cache
def _adapter(kind: Kind) -> TypeAdapter[Any]:
    return TypeAdapter(TYPES[kind])
