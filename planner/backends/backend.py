"""A back-end, the software that trains: its releases, what each can express, and how it behaves.

A room ``planner/backends/<name>/`` holds one back-end, and its ``BACKEND`` is what a reader sees first:

    space.py       what it can express: whole columns (``Columns``) and small rules over strategy fields
    physics.py     how its software behaves: kernels, launches, overlap, memory (``planner.predict.physics``)
    write.py       plan -> files                    read.py    files -> plan
    validator.py   its own parser, asked in a process of its own
    tiny_run.py    train a small form, where it can run on a CPU

``Space`` and ``Physics`` are light and are what the search imports; the rest is loaded when it is asked for.  A
back-end without ``files`` predicts and is searched, but nothing can be written for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from planner.backends.resuming import Resuming
from planner.backends.rules.columns import Columns
from planner.backends.rules.rule import RuleInput, RuleTable
from planner.predict.physics.physics import Physics
from planner.strategy.strategy import Dispatcher, Strategy

if TYPE_CHECKING:
    from planner.backends.checking.validator import Validator
    from planner.backends.emission.emission import BackEndFiles
    from planner.backends.emission.layout import Layout
    from planner.backends.launch import LauncherName
    from planner.backends.ranks.runner import Runner
    from planner.plan.plan import Plan

Spelling = Callable[[Strategy, RuleInput], Strategy]


def as_written(strategy: Strategy, given: RuleInput) -> Strategy:
    """The strategy itself: a back-end in whose files every switch has a spelling of its own."""
    return strategy


def first_dispatcher(given: RuleInput) -> Dispatcher:
    """An all-to-all, whatever the degrees."""
    return "alltoall"


@dataclass(frozen=True, slots=True)
class Space:
    """What a release can express.

    ``spelled`` gives the one spelling of switches that mean nothing beside the others (``cp_kind`` with cp = 1), the
    one that reading the files gives back; it never changes what runs.
    """

    columns: Columns
    rules: RuleTable
    spelled: Spelling = as_written
    dispatcher: Callable[[RuleInput], Dispatcher] = first_dispatcher
    """How routed tokens are sent where nobody says it, by the degrees of the experts and the devices."""


@dataclass(frozen=True, slots=True)
class Release:
    """One release of a back-end, as a user writes it after ``==``."""

    version: str
    space: Space
    physics: Physics
    predicts_only: bool = False
    """Whether no files are written for it, though they are for other releases."""


@dataclass(frozen=True, slots=True)
class Files:
    """How a back-end's files are written and read: ``read`` gives the plan's strategy and stages back.

    It gets what ``write`` made and what is put beside it: the launcher's files and ``plan.json``.
    """

    write: Callable[[Plan, str], BackEndFiles]
    """(plan, release) -> files.  Raises BackEndRefused with every rule that the plan breaks."""
    read: Callable[[Mapping[str, str]], tuple[Strategy, Layout]]
    """Raises DocumentInvalid for files that do not say one plan."""


@dataclass(frozen=True, slots=True)
class BackEnd:
    """One back-end.  ``releases``: the default first."""

    name: str
    title: str
    summary: str
    releases: tuple[Release, ...]
    vendors: frozenset[str] = frozenset({"NVIDIA"})
    """Makers of the devices that it trains on, as the hardware catalogue spells them."""
    files: Callable[[], Files] | None = None
    """Loads how its files are written and read; None = a generation of software that predicts only."""
    validators: Callable[[], tuple[Validator, ...]] = tuple
    tiny_run: Callable[[], Runner] | None = None
    unequal_devices: bool = False
    """Whether one pipeline may run over pools of unequal devices: a test runs it over ranks of unequal speed."""
    inside: str = ""
    """Another back-end whose default release has the same physics and a space that holds all of this one's."""
    resuming: Resuming = field(default_factory=Resuming)
    """What its checkpoints can become, and what a change of layout does to its loss curve."""
    not_started_by: Mapping[LauncherName, tuple[str, str]] = field(default_factory=dict)
    """Launchers that cannot start it: why not, and what instead."""

    def release(self, version: str) -> Release | None:
        """The release of that name, None where there is none."""
        return next((each for each in self.releases if each.version == version), None)


@dataclass(frozen=True, slots=True)
class Software:
    """A back-end in one of its releases: what runs a plan."""

    backend: BackEnd
    release: Release

    @property
    def name(self) -> str:
        """Name of the back-end."""
        return self.backend.name

    @property
    def spelled(self) -> str:
        """As ``--backend`` takes it: the release only where it is not the default one."""
        default = self.release is self.backend.releases[0]
        return self.name if default else f"{self.name}=={self.release.version}"

    @property
    def title(self) -> str:
        """For a person: ``Megatron-LM 0.19.2``."""
        return f"{self.backend.title} {self.release.version}".strip()
