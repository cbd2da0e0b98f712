"""``meshwright-measure``: what ``meshwright profile measure --out`` wrote.

Recognised by ``"format": "meshwright-measure"``, the first member of the JSON document.  Seconds and bytes as they
stand; every observation is checked again, so an edited file cannot bring in a wrong one.
Layout: ``profiles.measure.measured_file``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from pydantic import ValidationError

from profiles.errors import DocumentInvalid
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.source_file import Head, SourceFile
from profiles.measure.measured_file import FORMAT_NAME, SCHEMA_VERSION, TYPES, observation_of
from profiles.observations.environment import Environment

_MARK = re.compile(r'^\s*\{\s*"format"\s*:\s*"meshwright-measure"')
_LIMIT_BYTES = 256 << 20
_AGAIN = "measure again, or take the file as `meshwright profile measure --out` wrote it"


def matches(head: Head) -> bool:
    """The document names its format first."""
    return _MARK.match(head.text) is not None


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """All batches.  Raises DocumentInvalid for a document that is not one; bad observations are bad rows."""
    file = files[0]
    document = _load(file)
    if document.get("format") != FORMAT_NAME or document.get("schema_version") != SCHEMA_VERSION:
        _refuse(file, "/schema_version", f"not a {FORMAT_NAME} document of version {SCHEMA_VERSION}")
    imported = Imported(tool="meshwright", tool_version=_text(document.get("tool_version")))
    imported.facts.update({name: value for name, value in _object(file, document, "facts").items() if _plain(value)})
    for reason, count in _object(file, document, "skipped").items():
        if isinstance(count, int) and count > 0:
            imported.skip(_text(reason), count)
    for flag in _list(file, document, "flags"):
        if isinstance(flag, dict) and flag.get("code") and flag.get("what"):
            imported.flag(_text(flag["code"]), _text(flag["what"]))
    for place, data in enumerate(_list(file, document, "batches")):
        imported.batches.append(_batch(file, imported, data, place, options))
    if not imported.num_observations and not imported.bad_rows:
        _refuse(file, "/batches", "the document holds no observation")
    return imported


def _batch(file: SourceFile, imported: Imported, data: Any, place: int, options: ReadOptions) -> Batch:
    where = f"/batches/{place}"
    if not isinstance(data, dict):
        _refuse(file, where, "a batch is a JSON object")
    try:
        environment = Environment.model_validate(data.get("environment"))
    except ValidationError as error:
        _refuse(file, f"{where}/environment", str(error.errors(include_url=False)[0]["msg"]))
    if "device" in options.given:
        environment = environment.model_copy(update={"device": options.given["device"]})
    batch = Batch(environment)
    for kind in TYPES:
        found: list[Any] = getattr(batch, kind)
        for index, row in enumerate(_list(file, data, kind)):
            try:
                found.append(observation_of(kind, row))
            except ValueError as error:
                imported.bad(f"{where}/{kind}/{index}", str(error), _AGAIN)
    return batch


def _load(file: SourceFile) -> dict[str, Any]:
    try:
        document = json.loads(file.text(_LIMIT_BYTES), parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"{file.where}:{error.lineno}"
        raise DocumentInvalid(f"not valid JSON: {error.msg}", where=where, hint="copy the file again") from None
    except (ValueError, RecursionError) as error:
        raise DocumentInvalid(f"not valid JSON: {error}", where=file.where, hint=_AGAIN) from None
    if not isinstance(document, dict):
        _refuse(file, "", "the document is not a JSON object")
    return document


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a finite number")


def _object(file: SourceFile, document: dict[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name, {})
    if not isinstance(found, dict):
        _refuse(file, f"/{name}", f"'{name}' is a JSON object")
    return found


def _list(file: SourceFile, document: dict[str, Any], name: str) -> list[Any]:
    found = document.get(name, [])
    if not isinstance(found, list):
        _refuse(file, f"/{name}", f"'{name}' is a JSON list")
    return found


def _refuse(file: SourceFile, pointer: str, what: str) -> NoReturn:
    raise DocumentInvalid(what, where=f"{file.where}#{pointer}", hint=_AGAIN)


def _plain(value: object) -> bool:
    return isinstance(value, str | int | float | bool)


def _text(value: object) -> str:
    return str(value)[:500] if value is not None else ""


FORMAT = Format(FORMAT_NAME, "Meshwright's own measured profile", matches, read)
