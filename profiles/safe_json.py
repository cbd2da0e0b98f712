"""A strict reader of JSON text: RFC 8259 to plain data.

Refused, each with line and column: duplicate keys, ``NaN`` and ``Infinity`` (unless asked for), numbers beyond
the float range (``1e999``), lone surrogates, and everything above the limits of ``profiles.text_limits``.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

from profiles.errors import DocumentInvalid
from profiles.text_limits import (
    MAX_INTEGER_DIGITS,
    MAX_NESTING,
    check_size,
    check_surrogates,
    position,
    refuse,
)

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{},:]|[-+]?\d[^\s,\]}:]*|-?[A-Za-z]+', re.DOTALL)
_NOT_FINITE = ("NaN", "Infinity", "-Infinity")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(slots=True)
class _Level:
    """An open bracket; ``keys`` of an object seen so far (None in an array)."""

    keys: set[str] | None
    expects_key: bool = field(default=False)


def load_json_text(text: str, where: str, *, not_finite: bool = False) -> Any:
    """Parse one JSON document.  Raises ``DocumentInvalid`` with ``where:line:column`` and a hint.

    ``not_finite``: take ``NaN``, ``Infinity`` and ``-Infinity``, which Python's ``json.dump`` writes, as floats.
    """
    check_size(text, where)
    text = text.removeprefix("\ufeff")
    check_surrogates(text, where)
    _scan(text, where, not_finite)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        hint = "check the commas, the quotes and the brackets here and just before; JSON has no comments"
        refuse(f"not valid JSON: {error.msg}", where, error.lineno, error.colno, hint)
    except (ValueError, RecursionError) as error:
        raise DocumentInvalid(f"not valid JSON: {error}", where=where, hint="check the document") from None


def _scan(text: str, where: str, not_finite: bool) -> None:
    """One pass over the tokens for what ``json.loads`` would accept; syntax errors are left to it."""
    stack: list[_Level] = []
    for match in _TOKEN.finditer(text):
        token, start = match.group(), match.start()
        first = token[0]
        if first in "{[":
            if len(stack) >= MAX_NESTING:
                _refuse_at(text, start, where, f"nested deeper than {MAX_NESTING} levels", "flatten the document")
            stack.append(_Level(set(), True) if first == "{" else _Level(None))
        elif first in "]}":
            if stack:
                stack.pop()
        elif first == '"':
            _check_string(text, token, start, stack[-1] if stack else None, where)
        elif first == ",":
            if stack:
                stack[-1].expects_key = stack[-1].keys is not None
        elif first != ":" and not (not_finite and token in _NOT_FINITE):
            _check_literal(text, token, start, where)


def _check_string(text: str, token: str, start: int, level: _Level | None, where: str) -> None:
    is_key = level is not None and level.expects_key
    if "\\" not in token and not is_key:
        return
    try:
        value = json.loads(token)
    except ValueError:
        return
    if _LONE_SURROGATE.search(value):
        _refuse_at(text, start, where, "the string holds half a surrogate pair", "write the whole \\uXXXX\\uXXXX pair")
    if level is None or level.keys is None or not is_key:
        return
    if value in level.keys:
        _refuse_at(text, start, where, f"key '{value}' appears twice", "remove one of the two")
    level.keys.add(value)
    level.expects_key = False


def _check_literal(text: str, token: str, start: int, where: str) -> None:
    if token in _NOT_FINITE:
        _refuse_at(text, start, where, f"{token} is not a finite number", "give a finite number, or null")
    if token[-1].isalpha() or token in ("true", "false", "null"):
        return
    if token.lstrip("-").isdigit():
        if len(token) > MAX_INTEGER_DIGITS:
            _refuse_at(text, start, where, "the integer is too long", f"use at most {MAX_INTEGER_DIGITS} digits")
        return
    try:
        number = float(token)
    except ValueError:
        return
    if not math.isfinite(number):
        _refuse_at(text, start, where, f"{token} is too large for a number", "give a finite number")


def _refuse_at(text: str, offset: int, where: str, what: str, hint: str) -> NoReturn:
    line, column = position(text, offset)
    refuse(what, where, line, column, hint)
