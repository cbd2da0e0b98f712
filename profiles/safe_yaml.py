"""A safe reader of YAML text: YAML 1.2 core schema to plain data.

Refused, each with line and column: anchors, aliases and tags (one node can then stand for millions), duplicate keys
(the second would silently win), several documents, keys that are not text, infinities and NaN, and everything above
the limits of ``profiles.text_limits``.  Source of the scalar rules: YAML 1.2.2, section 10.3 (core schema), so
``yes``, ``on`` and ``2024-01-01`` are text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiles.errors import DocumentInvalid, NotFound
from profiles.safe_json import load_json_text
from profiles.text_limits import MAX_INTEGER_DIGITS, MAX_NESTING, MAX_NODES, check_size, check_surrogates, refuse

__all__ = ["load_document_file", "load_json_text", "load_yaml_text"]

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEAN = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?[0-9]+\Z")
_OCTAL = re.compile(r"0o[0-7]+\Z")
_HEX = re.compile(r"0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z")
_NO_KEY = object()


@dataclass(slots=True)
class _Open:
    """A collection whose end has not been seen; ``key`` waits for its value."""

    value: Any
    key: Any = _NO_KEY


def load_yaml_text(text: str, where: str) -> Any:
    """Parse one YAML document into dicts, lists, str, int, float, bool and None.

    Raises ``DocumentInvalid`` with ``where:line:column`` and a hint.  An empty document is None.
    """
    check_size(text, where)
    check_surrogates(text, where)
    return _build(_events(text, where), where)


def load_document_file(path: Path, *, not_finite: bool = False) -> Any:
    """Read a ``.json`` file as JSON and any other as YAML.  Raises NotFound and DocumentInvalid.

    ``not_finite``: take ``Infinity`` and ``NaN`` in JSON (``load_json_text``).
    """
    where = str(path)
    try:
        data = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound(f"there is no file {where}", where=where, hint="check the path") from None
    except OSError as error:
        raise DocumentInvalid(f"{where} cannot be read: {error.strerror}", where=where, hint="name a file") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentInvalid(
            f"byte {error.start} is not UTF-8 text", where=where, hint="save the file as UTF-8; is it a text file?"
        ) from None
    if path.suffix.lower() == ".json":
        return load_json_text(text, where, not_finite=not_finite)
    return load_yaml_text(text, where)


def _events(text: str, where: str) -> Iterator[Any]:
    """Parser events; the parser's own complaints become ``DocumentInvalid``."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.reader import ReaderError

    try:
        yield from YAML(typ="safe", pure=True).parse(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        what = " ".join(str(part).strip() for part in (error.context, error.problem) if part)
        hint = "check the indentation, the colons and the quotes on this line and the one above"
        refuse(f"not valid YAML: {what}", where, line, column, hint)
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        refuse("the text holds a control character", where, line, 1, "is this a text file?")
    except (YAMLError, ValueError, RecursionError) as error:
        raise DocumentInvalid(f"not valid YAML: {error}", where=where, hint="check the first lines") from None


def _build(events: Iterator[Any], where: str) -> Any:
    root: list[Any] = []
    stack: list[_Open] = [_Open(root)]
    for count, event in enumerate(events):
        kind = type(event).__name__
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        if count > MAX_NODES:
            refuse(f"more than {MAX_NODES:,} nodes", where, line, column, "write large tables as CSV or JSON")
        if kind == "ScalarEvent":
            _refuse_reference(event, where, line, column)
            _place(stack[-1], _scalar(event, where, line, column), where, line, column)
        elif kind in ("MappingStartEvent", "SequenceStartEvent"):
            _refuse_reference(event, where, line, column)
            if len(stack) > MAX_NESTING:
                refuse(f"nested deeper than {MAX_NESTING} levels", where, line, column, "flatten the document")
            value: Any = {} if kind == "MappingStartEvent" else []
            _place(stack[-1], value, where, line, column)
            stack.append(_Open(value))
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            stack.pop()
        elif kind == "AliasEvent":
            refuse(f"alias *{event.anchor} is not allowed", where, line, column, "write the value out")
        elif kind == "DocumentStartEvent":
            _check_document_start(event, bool(root), where, line, column)
    return root[0] if root else None


def _place(parent: _Open, value: Any, where: str, line: int, column: int) -> None:
    if isinstance(parent.value, list):
        parent.value.append(value)
    elif parent.key is _NO_KEY:
        if not isinstance(value, str):
            shown = "a collection" if isinstance(value, (dict, list)) else str(value)
            refuse(f"key {shown} is not text", where, line, column, "quote the key")
        if value in parent.value:
            refuse(f"key '{value}' appears twice", where, line, column, "remove one of the two")
        parent.key = value
    else:
        parent.value[parent.key] = value
        parent.key = _NO_KEY


def _refuse_reference(event: Any, where: str, line: int, column: int) -> None:
    if event.anchor is not None:
        refuse(f"anchor &{event.anchor} is not allowed", where, line, column, "write the value out where it is used")
    if event.tag is not None:
        refuse(
            f"tag {event.tag} is not allowed", where, line, column, "remove the tag; quote the value to make it text"
        )


def _check_document_start(event: Any, second: bool, where: str, line: int, column: int) -> None:
    if second:
        refuse("the file holds several documents", where, line, column, "keep one document a file")
    if event.tags:
        refuse("%TAG is not allowed", where, line, column, "remove the directive")
    if event.version not in (None, (1, 2)):
        shown = ".".join(str(part) for part in event.version)
        refuse(f"YAML {shown} is asked for; this is YAML 1.2", where, line, column, "remove the %YAML line")


def _scalar(event: Any, where: str, line: int, column: int) -> Any:
    text: str = event.value
    if not event.implicit[0]:
        return text
    if text in _NULL:
        return None
    if text in _BOOLEAN:
        return _BOOLEAN[text]
    if _INTEGER.match(text):
        if len(text) > MAX_INTEGER_DIGITS:
            refuse("the integer is too long", where, line, column, f"use at most {MAX_INTEGER_DIGITS} digits")
        return int(text)
    if len(text) <= MAX_INTEGER_DIGITS and _OCTAL.match(text):
        return int(text[2:], 8)
    if len(text) <= MAX_INTEGER_DIGITS and _HEX.match(text):
        return int(text[2:], 16)
    if _NOT_FINITE.match(text):
        refuse(f"{text} is not a finite number", where, line, column, "give a finite number")
    if _FLOAT.match(text):
        number = float(text)
        if not math.isfinite(number):
            refuse(f"{text} is too large for a number", where, line, column, "give a finite number")
        return number
    return text
