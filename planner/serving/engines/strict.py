"""Strict descriptions of nested options: every key that is there, with its type or its words; others are refused.

A description is a mapping of names to ``int``, ``float``, ``bool``, ``str``, ``list``, ``dict`` or ``any`` (with ``?``
where null is allowed), to the list of words that are allowed, to ``{"fields": ...}`` for a mapping of its own (with
``"optional": true`` where null is allowed), or to ``{"items": ...}`` for a list of such mappings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "str": (str,),
    "list": (list, tuple),
    "dict": (Mapping,),
}


def differences(given: Mapping[str, Any], described: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """What the description does not have or says otherwise, each with its path."""
    for name, value in given.items():
        where = f"{path}/{name}"
        if name not in described:
            yield f"{where}: there is no key {name}"
        else:
            yield from _of_value(value, described[name], where)


def _of_value(value: Any, wanted: Any, where: str) -> Iterator[str]:
    if isinstance(wanted, list):
        if value not in wanted:
            yield f"{where}: {value!r} is none of {', '.join(map(str, wanted))}"
    elif isinstance(wanted, dict) and "items" in wanted:
        if not isinstance(value, list):
            yield f"{where}: {value!r} is no list"
            return
        for index, each in enumerate(value):
            yield from _of_value(each, {"fields": wanted["items"]}, f"{where}/{index}")
    elif isinstance(wanted, dict):
        if isinstance(value, Mapping):
            yield from differences(value, wanted["fields"], where)
        elif value is not None or not wanted.get("optional"):
            yield f"{where}: {value!r} is no mapping"
    elif wanted != "any":
        kind = wanted.rstrip("?")
        fits = isinstance(value, _KINDS[kind]) and (kind == "bool" or not isinstance(value, bool))
        if not fits and not (value is None and wanted.endswith("?")):
            yield f"{where}: {value!r} is no {kind}"
