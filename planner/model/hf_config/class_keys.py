"""Keys of one ``transformers`` config class: defaults and aliases, read from ``class_defaults.json``.

The file is written by ``python -m benchmarks.model_types --defaults`` from the pinned release of ``transformers``.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from planner.model.hf_config.reader import ConfigReader

DEFAULTS_FILE = "class_defaults.json"
_MAX_WIDTH = 10_000_000


@cache
def class_defaults() -> dict[str, dict[str, Any]]:
    """Of every model type in the tables: ``defaults`` (key -> value) and ``aliases`` (other name -> key)."""
    text = (files("planner.model.hf_config") / DEFAULTS_FILE).read_text(encoding="utf-8")
    types: dict[str, dict[str, Any]] = json.loads(text)["types"]
    return types


class ClassKeys:
    """A reader that takes absent keys from the class of ``model_type`` and knows the other names of a key."""

    def __init__(self, reader: ConfigReader, model_type: str) -> None:
        known = class_defaults().get(model_type, {})
        self.reader = reader
        self.model_type = model_type
        self.defaults: dict[str, Any] = known.get("defaults", {})
        self._names: dict[str, tuple[str, ...]] = {}
        for other, key in known.get("aliases", {}).items():
            self._names[key] = (*self._names.get(key, ()), other)

    def names(self, key: str) -> tuple[str, ...]:
        """The key and its other names."""
        return (key, *self._names.get(key, ()))

    def optional(self, key: str, minimum: int = 1) -> int | None:
        """An integer, or None where both the config and the class have none."""
        default = self.defaults.get(key)
        default = default if isinstance(default, int) and not isinstance(default, bool) else None
        return self.reader.optional_integer(*self.names(key), default=default, minimum=minimum)

    def integer(self, key: str, minimum: int = 1) -> int:
        """An integer that must be there."""
        value = self.optional(key, minimum)
        if value is None:
            null = any(name in self.reader.data for name in self.names(key))
            absent = "is required: the class of this model_type has no default"
            self.reader.refuse(key, "must be an integer, is null" if null else absent)
            return max(minimum, 1)
        return value

    def width(self, key: str) -> int:
        """A feature width."""
        value = self.integer(key)
        if value > _MAX_WIDTH:
            self.reader.refuse(key, f"must be at most {_MAX_WIDTH}, is {value}")
            return 1
        return value

    def on(self, switch: bool | str) -> bool:
        """A fixed truth value, or that of a key."""
        if isinstance(switch, bool):
            return switch
        return self.reader.boolean(*self.names(switch), default=bool(self.defaults.get(switch)))

    def number(self, key: str, default: float) -> float:
        """A positive number; ``default`` where the class has none."""
        known = self.defaults.get(key)
        return self.reader.number(key, default=float(known) if known else default)

    def text(self, key: str, default: str) -> str:
        """A string; ``default`` where the class has none."""
        return self.reader.text(*self.names(key), default=self.defaults.get(key) or default)
