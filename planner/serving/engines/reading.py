"""Arguments that are taken one by one, so that what nobody took is known at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from planner.errors import DocumentInvalid

Made = TypeVar("Made", bound=BaseModel)


class Reading:
    """The arguments of one instance; ``engine`` is its title in messages."""

    def __init__(self, engine: str, arguments: Mapping[str, Any]) -> None:
        self.engine = engine
        self._left = {name: value for name, value in arguments.items() if value is not None}

    def take(self, name: str, default: Any = None) -> Any:
        """The value of an argument, which is then read; ``default`` where it is not given."""
        return self._left.pop(name, default)

    def rest(self) -> tuple[str, ...]:
        """What nobody has taken."""
        return tuple(sorted(self._left))

    def only(self, where: str, config: Mapping[str, Any], *known: str) -> None:
        """Raises DocumentInvalid where a nested configuration has keys that nobody reads."""
        unknown = sorted(set(config) - set(known))
        if unknown:
            raise DocumentInvalid(
                f"{where} has {', '.join(unknown)}, which no part of a deployment stands for",
                where=f"{where}/{unknown[0]}",
                hint=f"read are {', '.join(known)}",
            )

    def made(self, document: type[Made], **values: Any) -> Made:
        """A document of these values.  Raises DocumentInvalid with the first that is wrong."""
        try:
            return document(**values)
        except ValidationError as error:
            first = error.errors()[0]
            path = "/".join(map(str, first["loc"]))
            raise DocumentInvalid(
                f"{self.engine}'s arguments make no {document.__name__}: {path} {first['msg']}".replace(":  ", ": "),
                where=path or document.__name__,
                hint="change the argument that sets it",
            ) from error
