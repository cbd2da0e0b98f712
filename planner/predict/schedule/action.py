"""An action, one step of a pipeline schedule.

A schedule is, for each pipeline rank, an ordered list of ``Action``s.  ``planner.predict.schedule.orders`` writes them,
``planner.predict.schedule.simulate`` runs any of them.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Kind(Enum):
    """F forward, B full backward, I input gradient only, W weight gradient only."""

    FORWARD = "F"
    BACKWARD = "B"
    INPUT_GRADIENT = "I"
    WEIGHT_GRADIENT = "W"

    # Each is the only one of its kind: no name needs hashing.
    __hash__ = object.__hash__


KINDS: tuple[Kind, ...] = tuple(Kind)
"""Kind of each integer code in the arrays."""
FORWARD, BACKWARD, INPUT_GRADIENT, WEIGHT_GRADIENT = range(len(KINDS))


class Action(NamedTuple):
    """``kind`` of model chunk ``chunk`` (0 .. pp*vpp-1 along the model) for micro-batch ``microbatch``."""

    kind: Kind
    chunk: int
    microbatch: int


Order = tuple[tuple[Action, ...], ...]
"""One tuple of actions for each pipeline rank."""
