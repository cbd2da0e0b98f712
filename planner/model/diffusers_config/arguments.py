"""Arguments of one diffusers class: typed values with the class's defaults, every finding collected.

A ``transformer/config.json`` holds what the class was built with.  Each family's table names every argument of the
class with its default (a test holds it against the installed release), so a key that is not there is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from planner.model.denoiser import ConfigValue
from planner.model.hf_config.reader import ConfigReader


@dataclass(frozen=True, slots=True)
class Family:
    """What one class takes, and what its pipeline decides."""

    defaults: Mapping[str, ConfigValue]
    """Every argument of the class, with its default."""
    text_tokens: int
    """Text tokens of a sample, as the pipeline pads them."""
    usual_sample: tuple[int, int, int]
    """Frames, height and width that the family was released for."""
    compression: tuple[int, int]
    """Of its VAE: frames of a latent frame, pixels of a latent row."""
    packed: int = 1
    """Latent rows and columns that the pipeline packs into channels before the class sees them."""
    ignored: frozenset[str] = frozenset()
    """Arguments that change no size: rope bases, sample sizes of sine tables."""
    leftovers: frozenset[str] = frozenset()
    """Keys that released configs hold and the class no longer takes: diffusers warns and drops them."""
    fixed: Mapping[str, tuple[ConfigValue, ...]] | None = None
    """Arguments that are modelled at these values only."""


class Arguments:
    """Typed access to the arguments."""

    def __init__(self, reader: ConfigReader, family: Family) -> None:
        self.reader = reader
        self.family = family
        for key, values in (family.fixed or {}).items():
            value = self.value(key)
            if value not in values:
                said = " or ".join(repr(each) for each in values)
                reader.refuse(key, f"must be {said} to be modelled, is {str(value)[:60]!r}")
        for key in reader.data:
            if key not in family.defaults and key not in family.leftovers and not key.startswith("_"):
                reader.refuse(str(key)[:80], "is no argument of the class", "remove it, or describe what it changes")

    def value(self, key: str) -> ConfigValue:
        """As the config says, lists as tuples; the class's default where it says nothing."""
        found = self.reader.data.get(key, self.family.defaults[key])
        return tuple(found) if isinstance(found, list) else found

    def optional(self, key: str, minimum: int = 1) -> int | None:
        """A whole number from ``minimum`` up, or null."""
        default = self.family.defaults[key]
        known = default if isinstance(default, int) else None
        return self.reader.optional_integer(key, default=known, minimum=minimum)

    def size(self, key: str) -> int:
        """A positive whole number."""
        value = self.optional(key)
        if value is None:
            self.reader.refuse(key, "must be a whole number, is null")
        return value or 1

    def on(self, key: str) -> bool:
        """A truth value."""
        return self.reader.boolean(key, default=bool(self.family.defaults[key]))

    def number(self, key: str) -> float:
        """A positive number."""
        default = self.family.defaults[key]
        return self.reader.number(key, default=float(default) if isinstance(default, (int, float)) else 1.0)

    def text(self, key: str) -> str:
        """A string."""
        return self.reader.text(key, default=str(self.family.defaults[key]))

    def three(self, key: str) -> tuple[int, int, int]:
        """Three positive whole numbers."""
        value = self.value(key)
        sizes = [each for each in value if type(each) is int and each > 0] if isinstance(value, tuple) else []
        if not isinstance(value, tuple) or len(value) != 3 or len(sizes) != 3:
            self.reader.refuse(key, "must be three positive whole numbers")
            return 1, 1, 1
        return sizes[0], sizes[1], sizes[2]

    def changed(self) -> tuple[tuple[str, ConfigValue], ...]:
        """Arguments that are not the class's defaults, by name."""
        given = {key: self.value(key) for key in self.reader.data if key in self.family.defaults}
        return tuple(sorted((key, value) for key, value in given.items() if value != self.family.defaults[key]))
