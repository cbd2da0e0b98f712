"""The parts of ``sharding.json`` that were changed: found by a short digest of every part, kept in the manifest.

A part is what a JSON pointer of two steps names (``/optimizer``, ``/costs/total_s``, ``/operators/12``): a plan has
thousands of values, and its rows are what a person reads or edits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

DIGEST_LETTERS = 12
MOST_SHOWN = 8


def part_digests(plan: Mapping[str, Any]) -> dict[str, str]:
    """Pointer -> first letters of the SHA-256 of the part's canonical JSON."""
    return {pointer: _digest(value) for pointer, value in _parts(plan)}


def changed_parts(written: Mapping[str, str], text: str) -> tuple[str, ...]:
    """``/optimizer: now "sgd"`` for every part that differs, is new or is missing; the first few of many.

    Nothing where the text is no JSON object: then its reader says what is wrong.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(found, dict):
        return ()
    now = dict(_parts(found))
    changed = [
        f"{pointer}: {_shown(now[pointer]) if pointer in now else 'missing'}"
        for pointer in dict.fromkeys((*written, *now))
        if pointer not in now or _digest(now[pointer]) != written.get(pointer)
    ]
    more = len(changed) - MOST_SHOWN
    return (*changed[:MOST_SHOWN], *([f"and {more} more"] if more > 0 else []))


def _parts(plan: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in plan.items():
        if isinstance(value, dict) and value:
            yield from ((f"/{key}/{name}", item) for name, item in value.items())
        elif isinstance(value, list) and value:
            yield from ((f"/{key}/{index}", item) for index, item in enumerate(value))
        else:
            yield f"/{key}", value


def _digest(value: Any) -> str:
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:DIGEST_LETTERS]


def _shown(value: Any) -> str:
    """A scalar itself; of a row, its name."""
    if isinstance(value, dict):
        name = value.get("parameter") or value.get("name")
        return f"of {name}" if isinstance(name, str) else "changed"
    return "changed" if isinstance(value, list) else f"now {json.dumps(value)}"
