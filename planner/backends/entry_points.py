"""What other packages add to this one: the entry points of a group, without ``importlib.metadata``.

Importing that module (with ``email``, ``zipfile`` and ``inspect``) takes a quarter of ``meshwright --help``.  An entry
point is a line ``name = module:attribute`` under ``[group]`` in the file ``entry_points.txt`` of an installed
distribution's folder on the path (https://packaging.python.org/en/latest/specifications/entry-points/).  Where
distributions may lie elsewhere, in archives or known to another finder, ``importlib.metadata`` is asked.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.machinery import PathFinder
from operator import attrgetter
from typing import Any

FOLDERS = (".dist-info", ".egg-info")


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """One entry point; ``value``: ``module:attribute``."""

    name: str
    value: str

    @property
    def module(self) -> str:
        """The module that it names."""
        return self.value.partition(":")[0].strip()

    def load(self) -> Any:
        """What it names.  Raises what importing its module raises."""
        attribute = self.value.partition(":")[2].partition("[")[0].strip()
        module = import_module(self.module)
        return attrgetter(attribute)(module) if attribute else module


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group, in the order of the path; of a distribution that is there twice the first one's."""
    if not _plainly_installed():
        from importlib import metadata

        return tuple(EntryPoint(each.name, each.value) for each in metadata.entry_points(group=group))
    return tuple(point for text in _texts() for point in _of_group(text, group))


def _plainly_installed() -> bool:
    """Whether every distribution is a folder on the path."""
    finders = [each for each in sys.meta_path if hasattr(each, "find_distributions")]
    return finders in ([], [PathFinder]) and not any(os.path.isfile(place) for place in sys.path)


def _texts() -> Iterator[str]:
    """The ``entry_points.txt`` of every distribution that has one."""
    seen = set[str]()
    for place in sys.path:
        try:
            names = sorted(name for name in os.listdir(place or ".") if name.endswith(FOLDERS))
        except OSError:
            continue  # what is no folder holds no distribution
        for name in names:
            distribution = name.partition("-")[0].lower().replace(".", "_")
            if distribution in seen:
                continue
            seen.add(distribution)
            try:
                with open(os.path.join(place, name, "entry_points.txt"), encoding="utf-8") as file:
                    yield file.read()
            except OSError:
                continue  # most have none


def _of_group(text: str, group: str) -> Iterator[EntryPoint]:
    here = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            here = line[1:-1].strip() == group
        elif here and line and line[0] not in "#;":
            name, _, value = line.partition("=")
            yield EntryPoint(name.strip(), value.strip())
