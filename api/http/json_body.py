"""The strict JSON reader of request bodies, which runs before any framework sees them.

Refused, because one layer or another would later fail on it or silently change it:

    NaN, Infinity, -Infinity, 1e999     no JSON numbers; no document may hold them
    the same key twice                  parsers disagree on which one counts
    U+0000                              PostgreSQL stores no such text
    half a surrogate pair               cannot be written back as UTF-8
    integers beyond 64 bits             cannot be stored in any column
    more than ``MAX_DEPTH`` levels      parsers recurse
    bytes that are not UTF-8            RFC 8259, section 8.1

``json.loads`` does the reading, in C; its hooks see every object and number once, so two mebibytes take milliseconds.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NoReturn

from profiles.errors import DocumentInvalid

MAX_DEPTH = 64
MAX_INTEGER = 2**63 - 1
MIN_INTEGER = -(2**63)
MAX_INTEGER_DIGITS = 19
LONGEST_SHOWN = 60

_SUSPECT = re.compile(r"\\u(?:0000|[dD][89a-fA-F])|\x00")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
BODY = "body"
"""What findings call the request body before any pointer into it exists."""


def parse_json(body: bytes) -> Any:
    """Plain data of a request body.  Raises DocumentInvalid with the place and what would repair it."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _refuse(f"byte {error.start} is not UTF-8", "send the JSON text as UTF-8")
    if not text.strip():
        _refuse("the body is empty", "send a JSON object")
    try:
        value = json.loads(
            text,
            object_pairs_hook=_distinct,
            parse_constant=_no_constant,
            parse_float=_finite,
            parse_int=_sixty_four_bits,
        )
    except json.JSONDecodeError as error:
        _refuse(
            f"not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})",
            "check the commas, quotes and brackets just before; JSON has no comments",
        )
    except RecursionError:
        _too_deep()
    _check_depth(value)
    # Only a text that spells an escape or holds the character can hold a bad string: the walk is rare.
    if _SUSPECT.search(text):
        _check_strings(value)
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        _refuse(f"the key {_shown(twice)} appears twice in one object", "remove one of the two")
    return found


def _no_constant(name: str) -> NoReturn:
    _refuse(f"{name} is not a JSON number", "give a finite number, or null")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        _refuse(f"{_shown(text)} is too large for a number", "give a finite number")
    return value


def _sixty_four_bits(text: str) -> int:
    if len(text.lstrip("-")) > MAX_INTEGER_DIGITS or not MIN_INTEGER <= (value := int(text)) <= MAX_INTEGER:
        _refuse(f"the integer {_shown(text)} does not fit 64 bits", f"give at most {MAX_INTEGER}")
    return value


def _check_depth(value: Any) -> None:
    """Level by level, so that a deep document costs no recursion here."""
    level, depth = [value], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            _too_deep()
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list))
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, (dict, list))
        ]


def _check_strings(value: Any) -> None:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += [*each.keys(), *each.values()]
        elif isinstance(each, list):
            waiting += each
        elif isinstance(each, str):
            if "\x00" in each:
                _refuse("a string holds the character U+0000", "remove it: databases cannot store it")
            if _LONE_SURROGATE.search(each):
                _refuse("a string holds half a surrogate pair", "write the whole \\uXXXX\\uXXXX pair")


def _too_deep() -> NoReturn:
    _refuse(f"nested deeper than {MAX_DEPTH} levels", "flatten the document")


def _shown(text: str) -> str:
    """A short, safe spelling of what was sent."""
    spelt = ascii(text)
    return spelt if len(spelt) <= LONGEST_SHOWN else f"{spelt[: LONGEST_SHOWN - 4]}...'"


def _refuse(what: str, hint: str) -> NoReturn:
    raise DocumentInvalid(what, where=BODY, hint=hint) from None
