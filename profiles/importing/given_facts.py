"""The user's facts, and those never asked for: a typing error in ``--set`` must not pass in silence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class GivenFacts(dict[str, str]):
    """Facts by name that remember which of them were looked at."""

    def __init__(self, given: dict[str, str]) -> None:
        super().__init__(given)
        self._asked: set[str] = {"device"}

    @property
    def never_asked_for(self) -> list[str]:
        """Names that nobody looked at."""
        return [name for name in dict.keys(self) if name not in self._asked]

    def __getitem__(self, name: str) -> str:
        self._asked.add(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self._asked.add(str(name))
        return super().__contains__(name)

    def __iter__(self) -> Iterator[str]:
        # Who goes through all of them looks at each.
        self._asked.update(dict.keys(self))
        return super().__iter__()

    def get(self, name: str, default: Any = None) -> Any:
        """The fact called ``name``, or ``default``."""
        self._asked.add(name)
        return super().get(name, default)
