"""Validation of plain data as a document: all things to repair are reported at once.

Every problem becomes a ``Finding`` with a JSON pointer (RFC 6901) and a hint; ``invalid`` folds any number of them
into the one ``DocumentInvalid`` that a door shows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from profiles.errors import DocumentInvalid
from profiles.spelling import nearest_name
from profiles.units import quantity_parser

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

# Findings are needed by every command line, pydantic (a fifth of the start) only where documents are read.
D = TypeVar("D", bound="BaseModel")
MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing wrong: at ``pointer`` (``/pools/0/num_nodes``), ``what``, and a ``hint`` that repairs it.

    ``also``: other places of the same fault, where a change repairs it as well: pointers, or flags (``--devices``).
    """

    pointer: str
    what: str
    hint: str
    also: tuple[str, ...] = ()


class FindingsInvalid(DocumentInvalid):
    """An invalid document with its findings kept apart, for doors that list them.

    ``place`` is what the pointers lead into: a file, a part of a request, or a flag.  In a flag's words a field is
    named as it is written there: ``--strategy tp``.
    """

    def __init__(self, findings: Sequence[Finding], where: str) -> None:
        self.findings, self.place = tuple(findings), where
        first, flag = self.findings[0], where.startswith("--")
        if len(self.findings) == 1:
            at = f"{where} {first.pointer[1:]}".rstrip() if flag else f"{where}#{first.pointer}"
            super().__init__(first.what, where=at, hint=first.hint or None)
            return
        lines = [f"{len(self.findings)} problems"]
        for finding in self.findings[:MOST_SHOWN]:
            repair = f" ({finding.hint})" if finding.hint else ""
            at = finding.pointer[1:] if flag else f"#{finding.pointer or '/'}"
            lines.append(f"  {at}: {finding.what}{repair}" if at else f"  {finding.what}{repair}")
        if len(self.findings) > MOST_SHOWN:
            lines.append(f"  and {len(self.findings) - MOST_SHOWN} more")
        super().__init__(
            "\n".join(lines), where=where, hint=f"repair each of them; the {'names' if flag else 'pointers'} say where"
        )


def require(findings: Sequence[Finding], where: str) -> None:
    """Raise ``FindingsInvalid`` if there is any finding."""
    if findings:
        raise FindingsInvalid(findings, where)


def read_document(kind: type[D], data: Any, where: str, *, human_units: bool = False) -> D:
    """Turn plain data into a document of type ``kind``.

    ``human_units`` lets text such as "400 Gbit/s" stand where a field name ends with a unit (``_bytes``,
    ``_bytes_per_s``, ``_flops_per_s``, ``_s``).  Raises ``FindingsInvalid`` with every problem at once.
    """
    from pydantic import ValidationError

    if not isinstance(data, dict):
        shown = "nothing" if data is None else f"a {type(data).__name__}"
        fields = ", ".join(kind.model_fields)
        raise FindingsInvalid([Finding("", f"a mapping is expected, found {shown}", f"give the keys {fields}")], where)
    findings: list[Finding] = []
    if human_units:
        data = _resolve_units(data, "", where, findings)
    try:
        document = kind.model_validate(data)
    except ValidationError as error:
        spoiled = {finding.pointer for finding in findings}
        more = (_finding(kind, data, detail) for detail in _own_errors(error))
        findings.extend(finding for finding in more if finding.pointer not in spoiled)
        raise FindingsInvalid(findings, where) from None
    from profiles.value_kinds import value_kinds

    require([*findings, *value_kinds(data, document, quoted=False)], where)
    return document


def pointer_to(*parts: str | int) -> str:
    """JSON pointer of a path, with ``~`` and ``/`` escaped."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def _own_errors(error: ValidationError) -> list[ErrorDetails]:
    """Pydantic's errors without ``too_short`` of a list whose items are wrong: it counts only the sound ones."""
    details = error.errors(include_url=False)
    places = [detail["loc"] for detail in details]
    return [
        detail
        for detail in details
        if detail["type"] != "too_short"
        or not any(len(loc) > len(detail["loc"]) and loc[: len(detail["loc"])] == detail["loc"] for loc in places)
    ]


def _finding(kind: type[BaseModel], data: Any, detail: ErrorDetails) -> Finding:
    path = _path_in_data(data, detail["loc"])
    pointer = pointer_to(*path)
    key = str(detail["loc"][-1]) if detail["loc"] else ""
    if detail["type"] == "extra_forbidden":
        return Finding(pointer, f"unknown key '{key}'", _known_keys_hint(kind, path))
    if detail["type"] == "missing":
        return Finding(pointer, f"'{key}' is missing", f"add {key}")
    message = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    if detail["type"] == "value_error" and (inside := re.match(r"(/[\w/]+): ", message)):
        # A rule of the whole document that says which of its keys is wrong.
        return Finding(f"{pointer}{inside[1]}", message[inside.end() :], f"change {inside[1].rpartition('/')[2]}")
    shown = repr(detail["input"])
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    if detail["msg"].startswith("Input should be "):
        message = f"must be {message}"
    hint = f"change {key}" if key else "change the value"
    if detail["type"] == "value_error" and isinstance(detail["input"], dict):
        # A rule between the parts of a mapping names what is wrong; the whole mapping would only hide it.
        return Finding(pointer, message, hint)
    return Finding(pointer, f"{message}, found {shown}", hint)


def _path_in_data(data: Any, loc: tuple[int | str, ...]) -> list[str | int]:
    """Pydantic's location without the parts that name union members instead of places in the data."""
    path: list[str | int] = []
    for index, part in enumerate(loc):
        inside = (isinstance(data, dict) and part in data) or (
            isinstance(data, (list, tuple)) and isinstance(part, int) and part < len(data)
        )
        if inside:
            data = data[part]
            path.append(part)
        elif index == len(loc) - 1 and isinstance(data, dict):
            path.append(part)
    return path


def _known_keys_hint(kind: type[BaseModel], path: list[str | int]) -> str:
    models = [kind]
    for part in path[:-1]:
        fields = [model.model_fields[part] for model in models if isinstance(part, str) and part in model.model_fields]
        if fields:
            models = [model for each in fields for model in _models(each.annotation)] or models
    known = sorted({name for model in models for name in model.model_fields})
    match = nearest_name(str(path[-1]), known)
    return f"did you mean '{match}'?" if match else f"known keys: {', '.join(known)}"


def _models(annotation: Any) -> list[type[BaseModel]]:
    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in _models(argument)]


def _resolve_units(value: Any, pointer: str, where: str, findings: list[Finding], name: str = "") -> Any:
    """Copy of the data with quantities as numbers; what cannot be read becomes a finding."""
    if isinstance(value, dict):
        # The keys under provenance are field names, but their values are not quantities.
        inherited = name if name.endswith("flops_per_s") else ""
        return {
            key: each
            if key == "provenance"
            else _resolve_units(each, pointer + pointer_to(key), where, findings, inherited or str(key))
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_resolve_units(each, f"{pointer}/{index}", where, findings) for index, each in enumerate(value)]
    parser = quantity_parser(name) if isinstance(value, str) else None
    if parser is None:
        return value
    try:
        return parser(value, where)
    except DocumentInvalid as error:
        findings.append(Finding(pointer, error.what, error.hint or "give a number"))
        return value
