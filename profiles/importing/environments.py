"""The environment of a measurement, from what the file says and what the user adds.

``options.given`` fills what the source does not say: device, num_devices, num_nodes, devices_per_node, group_size,
line_rate_bytes_per_s.  A value that is not a number there is the user's mistake and is refused with the flag's name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from profiles.device_names import catalogue_device
from profiles.errors import DocumentInvalid
from profiles.importing.format import ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.source_file import SourceFile
from profiles.observations.environment import Environment
from profiles.units import parse_bytes_per_s

_WHOLE = ("num_devices", "num_nodes", "devices_per_node")


def given_whole(options: ReadOptions, name: str) -> int | None:
    """A positive whole number that the user gave, None if not given.  Raises DocumentInvalid."""
    text = options.given.get(name)
    if text is None:
        return None
    plain = text.strip()
    if not (plain.isascii() and plain.isdigit() and 0 < len(plain) <= 9 and int(plain) > 0):
        raise DocumentInvalid(
            f"{name} is '{text}', not a whole number from 1", where="--set", hint=f"write it like --set {name}=8"
        )
    return int(plain)


def given_bytes_per_s(options: ReadOptions, name: str) -> float | None:
    """A bandwidth that the user gave ("400 Gbit/s", "50 GB/s", a plain number of bytes).  Raises DocumentInvalid."""
    text = options.given.get(name)
    if text is None:
        return None
    value = parse_bytes_per_s(text, f"--set {name}")
    if value <= 0:
        raise DocumentInvalid(f"{name} is '{text}'", where="--set", hint=f"write it like --set {name}='400 Gbit/s'")
    return value


def environment_of(options: ReadOptions, device_reported: str = "", **known: Any) -> Environment:
    """The environment of one run: what the file says (``known``; None = silent), then what the user gave."""
    values = {name: value for name, value in known.items() if value is not None}
    for name in _WHOLE:
        given = given_whole(options, name)
        if given is not None:
            values.setdefault(name, given)
    device = options.given.get("device") or catalogue_device(device_reported) or ""
    return Environment(device=device, device_reported=device_reported, **values)


@dataclass(slots=True)
class Batches:
    """One batch per environment, in the order in which they first appear."""

    _found: dict[str, Batch] = field(default_factory=dict)

    def of(self, environment: Environment) -> Batch:
        """The batch of this environment."""
        return self._found.setdefault(environment.model_dump_json(), Batch(environment))

    def all(self) -> list[Batch]:
        """Every batch that holds something."""
        return [batch for batch in self._found.values() if batch.num_observations]


def finished(imported: Imported, batches: Batches, file: SourceFile, missing: str, hint: str) -> Imported:
    """The result with its batches.  Raises DocumentInvalid when nothing at all could be stored.

    ``missing`` says what the file does not contain ("no row of results"); the first bad row or flag is the better
    reason where there is one.
    """
    imported.batches = batches.all()
    if imported.num_observations:
        return imported
    what, where = missing, file.where
    if imported.bad_rows:
        first = imported.bad_rows[0]
        line = first.where.removeprefix("line ")
        where = f"{file.where}:{line}" if line.isdigit() else f"{file.where}#{first.where}"
        what, hint = f"{missing}; {first.what}", first.hint or hint
    elif imported.flags:
        what = f"{missing}; {imported.flags[-1].what}"
    raise DocumentInvalid(what, where=where, hint=hint)
