"""What a back-end's checkpoints can become, and what a change of layout does to its loss curve: the types.

A room's ``resume.py`` says for each way of keeping the training state (``ZeRO`` stages) which degrees a saved
checkpoint may be loaded with, what has to be run first, and what is not restored.  A source names repository, commit,
file and lines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Keeps = Literal["exactly", "up to rounding", "no"]
"""The loss curve: bit for bit, as the same sums in another order, or not the same curve."""
Matters = Literal["always", "experts", "dropout", "uneven tokens"]
"""When an effect is one: for every run, with routed experts, with dropout, where micro-batches differ in tokens."""
DATA_PARALLEL = frozenset({"dp_replicate", "dp_shard"})
LAYOUT = frozenset({"tp", "cp", "pp", "vpp", "ep", "etp", *DATA_PARALLEL})
"""Degrees of which a checkpoint depends; the ZeRO stage decides which format it has."""


@dataclass(frozen=True, slots=True)
class Reshaping:
    """One way from a saved checkpoint to other degrees."""

    changes: frozenset[str]
    """Degrees that may change."""
    source: str
    saved_with: str = ""
    """What the checkpoint must have been written with; empty = as it is by default."""
    steps: tuple[str, ...] = ()
    """What to run, or to set, before the restart."""
    converts: bool = False
    """Whether a step reads and writes the whole checkpoint once."""


@dataclass(frozen=True, slots=True)
class CheckpointFormat:
    """How the training state of plans of some ZeRO stages is saved."""

    name: str
    zero_stages: frozenset[int]
    ways: tuple[Reshaping, ...]
    """The simplest first."""
    notes: tuple[tuple[frozenset[str], str], ...] = ()
    """What is not restored, or needs a word, where one of these degrees changes."""


@dataclass(frozen=True, slots=True)
class LossEffect:
    """What a change of some strategy fields does to the loss curve."""

    fields: frozenset[str]
    keeps: Keeps
    why: str
    source: str
    matters: Matters = "always"


@dataclass(frozen=True, slots=True)
class Resuming:
    """All that is known of a back-end."""

    formats: tuple[CheckpointFormat, ...] = ()
    effects: tuple[LossEffect, ...] = field(default=())
    saves: bool = True
    """False: it writes no checkpoints."""
