"""An engine: its releases, what each can express, how it schedules and reserves memory, and its files.

A room ``planner/serving/engines/<name>/`` holds one engine, and its ``ENGINE`` is what a reader sees first:

    space.py       what it can express: small rules over a group's layout, formats and settings
    behaviour.py   ``Behaviour``: how its scheduler fills an iteration, what it reserves, what it costs beside kernels
    write.py       deployment -> launch commands and files      read.py    files -> deployment
    validator.py   its own parser, asked in a process of its own

``Behaviour`` is light and is what prediction and search import; files are loaded when they are asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.serving.predict.behaviour import Behaviour
from planner.serving.words import EngineName


@dataclass(frozen=True, slots=True)
class Engine:
    """One engine."""

    name: EngineName
    title: str
    releases: tuple[str, ...]
    """The first is the pinned one."""
    behaviour: Behaviour
