"""Groups of instances as text: ``2*tp=4,ep=4``, or ``prefill:2*tp=2+decode:1*tp=4,max_num_sequences=512``."""

from __future__ import annotations

import re
from typing import Any

from planner.serving.layout import InstanceGroup, InstanceLayout, InstanceSettings
from planner.serving.words import Role
from profiles.errors import DocumentInvalid
from profiles.spelling import nearest_name
from profiles.validation import read_document

AXES = tuple(InstanceLayout.model_fields)
SETTINGS = tuple(name for name in InstanceSettings.model_fields if name != "speculation")
ROLES: tuple[Role, ...] = ("aggregated", "prefill", "decode")
_HINT = "for example 2*tp=4, or prefill:2*tp=2+decode:1*tp=4"
_GROUP = re.compile(r"(?:(?P<role>[a-z]+):)?(?:(?P<count>\d{1,6})\s*\*)?(?P<fields>[^:*]*)\Z")


def parse_groups(text: str, where: str) -> tuple[InstanceGroup, ...]:
    """The groups that a text says.  Raises DocumentInvalid with the part that is wrong."""
    return tuple(_group(part.strip(), where) for part in text.split("+"))


def parse_fields(text: str, where: str) -> dict[str, Any]:
    """Fields of a layout or of settings: ``tp=8,max_num_sequences=256``.  Raises DocumentInvalid."""
    said: dict[str, Any] = {}
    for word in (word.strip() for word in text.split(",")):
        name, equals, value = (part.strip() for part in word.partition("="))
        if not equals:
            raise DocumentInvalid(f"{word!r} is not NAME=VALUE", where=where, hint=_HINT)
        if name not in (*AXES, *SETTINGS):
            near = nearest_name(name, (*AXES, *SETTINGS))
            hint = f"did you mean {near}?" if near else f"fields: {', '.join((*AXES, *SETTINGS))}"
            raise DocumentInvalid(f"an instance has no {name!r}", where=where, hint=hint)
        if name in said:
            raise DocumentInvalid(f"{name} is given twice", where=where, hint=_HINT)
        said[name] = _value(value)
    return said


def _group(part: str, where: str) -> InstanceGroup:
    match = _GROUP.match(part)
    if match is None or (match["role"] is not None and match["role"] not in ROLES):
        raise DocumentInvalid(f"{part!r} is no group of instances", where=where, hint=_HINT)
    said = parse_fields(match["fields"], where) if match["fields"].strip() else {}
    data = {
        "role": match["role"] or "aggregated",
        "num_instances": int(match["count"] or 1),
        "layout": {name: value for name, value in said.items() if name in AXES},
        "settings": {name: value for name, value in said.items() if name in SETTINGS},
    }
    return read_document(InstanceGroup, data, where)


def _value(text: str) -> int | float | bool | str:
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
