"""Reading one key of a Hugging Face config, and checking that its value is possible.

A ``ConfigReader`` reads typed values with the defaults of the ``transformers`` class, collects *all* findings with
their JSON pointers, and raises them together.  Unknown keys are normal in a ``config.json``; a key that looks like a
misspelling of one that is read and absent is a finding, because its default would silently be used instead.
"""

from __future__ import annotations

import difflib
import json
import math
from typing import Any, cast

from profiles.validation import Finding, pointer_to, require

MAX_LAYERS = 10_000
MAX_INTEGER = 10**9
_TYPO_CUTOFF = 0.93


class ConfigReader:
    """Typed access to one JSON object; children share the findings of their root."""

    def __init__(self, data: dict[str, Any], where: str, pointer: str = "", root: ConfigReader | None = None) -> None:
        self.data = data
        self.where = where
        self.pointer = pointer
        self._findings: list[Finding] = root._findings if root is not None else []
        self._readers: list[ConfigReader] = root._readers if root is not None else []
        self._readers.append(self)
        self._read: list[tuple[str, ...]] = []

    def refuse(self, key: str, message: str, hint: str | None = None) -> None:
        """Record one finding at ``key``; ``message`` continues the key's name ("must be ...")."""
        hint = f"correct {key}" if hint is None else hint
        self._findings.append(Finding(self.pointer + pointer_to(key), f"{key} {message}", hint))

    def child(self, key: str, absent: dict[str, Any] | None = None, *, filled: bool = False) -> ConfigReader:
        """Reader of the nested object at ``key``; an absent one reads as ``absent``, or empty (all defaults).

        ``filled``: whether ``absent`` also stands in for single keys that the object lacks.
        """
        self._read.append((key,))
        value = self.data.get(key)
        if value is not None and not isinstance(value, dict):
            self.refuse(key, f"must be an object, is {_kind(value)}")
            value = None
        if value is None or filled:
            value = {**(absent or {}), **(value or {})}
        return ConfigReader(value, self.where, self.pointer + pointer_to(key), self)

    def _look(self, keys: tuple[str, ...], default: object) -> tuple[str, object]:
        self._read.append(keys)
        for key in keys:
            if key in self.data:
                return key, self.data[key]
        return keys[0], default

    def integer(self, *keys: str, default: int, minimum: int = 1, maximum: int = MAX_INTEGER) -> int:
        """Integer at the first of ``keys`` that is present (HF attribute aliases)."""
        value = self.optional_integer(*keys, default=default, minimum=minimum, maximum=maximum)
        if value is None:
            self.refuse(keys[0], "must be an integer, is null")
            return max(default, minimum)
        return value

    def optional_integer(
        self, *keys: str, default: int | None = None, minimum: int = 1, maximum: int = MAX_INTEGER
    ) -> int | None:
        """As ``integer``, with null allowed."""
        key, value = self._look(keys, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            self.refuse(key, f"must be an integer, is {_kind(value)}")
        elif value < minimum:
            self.refuse(key, f"must be at least {minimum}, is {value}")
        elif value > maximum:
            self.refuse(key, f"must be at most {maximum}, is {value if value < 10**30 else 'astronomical'}")
        else:
            return value
        return max(default or 0, minimum)

    def number(self, *keys: str, default: float) -> float:
        """Positive finite number."""
        value = self.optional_number(*keys, default=default)
        return default if value is None else value

    def optional_number(self, *keys: str, default: float | None = None) -> float | None:
        """Positive finite number, or null."""
        key, value = self._look(keys, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.refuse(key, f"must be a number, is {_kind(value)}")
        elif not math.isfinite(value) or value <= 0:
            self.refuse(key, f"must be a finite number above 0, is {json.dumps(value)}")
        else:
            return float(value)
        return default

    def boolean(self, *keys: str, default: bool) -> bool:
        """True or false; null reads as the default."""
        key, value = self._look(keys, default)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.refuse(key, f"must be true or false, is {_kind(value)}")
            return default
        return value

    def text(self, *keys: str, default: str) -> str:
        """A string; null reads as the default."""
        key, value = self._look(keys, default)
        if value is None:
            return default
        if not isinstance(value, str):
            self.refuse(key, f"must be a string, is {_kind(value)}")
            return default
        return value

    def strings(self, key: str) -> list[str] | None:
        """A list of strings, or None where absent or null."""
        _, value = self._look((key,), None)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.refuse(key, f"must be a list of strings, is {_kind(value)}")
            return None
        return cast(list[str], value)

    def integers(self, key: str, default: list[int]) -> list[int]:
        """A list of integers of zero or more; null reads as the default."""
        _, value = self._look((key,), None)
        if value is None:
            return default
        good = isinstance(value, list) and all(
            isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in value
        )
        if not good:
            self.refuse(key, "must be a list of integers of zero or more")
            return default
        return cast(list[int], value)

    def unread(self) -> list[tuple[str, Any]]:
        """Keys that nobody asked for, with their values."""
        known = {key for keys in self._read for key in keys}
        return [(key, value) for key, value in self.data.items() if key not in known]

    def readers(self) -> tuple[ConfigReader, ...]:
        """This reader and all readers of the same document."""
        return tuple(self._readers)

    def finish(self) -> None:
        """Raise ``FindingsInvalid`` with every finding of this reader and its children, if there is any."""
        for reader in self._readers:
            reader._refuse_misspellings()
        require(self._findings, self.where)

    def _refuse_misspellings(self) -> None:
        known = {key for keys in self._read for key in keys}
        absent = [key for keys in self._read if not any(k in self.data for k in keys) for key in keys]
        for key in self.data:
            if key in known or not isinstance(key, str):
                continue
            close = difflib.get_close_matches(key, absent, n=1, cutoff=_TYPO_CUTOFF)
            if close:
                self.refuse(key, "is not a known key", f"did you mean '{close[0]}'?")


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return f"the string '{value[:40]}'"
    if isinstance(value, (int, float)):
        return f"the number {value!r}"[:60]
    return "a list" if isinstance(value, list) else "an object"
