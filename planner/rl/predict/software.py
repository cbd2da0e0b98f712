"""What the software of RL adds to what engines and trainers take alone: factors that were fitted to measured steps.

Generation inside a step runs behind Ray actors, with sampling of log-probabilities and without the engine's own
scheduler of a server; the trainer computes losses over whole vocabularies and moves batches between processes; weights
go tensor by tensor.  None of that is in the predictions of serving and training, and no source tells it part by part.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from profiles.shipped_tables import shipped_table


@dataclass(frozen=True, slots=True)
class SoftwareFactors:
    """Measured over predicted seconds."""

    rollout: float = 1.0
    trainer: float = 1.0
    way: float = 1.0
    """Of the weights from trainer to engines."""


@cache
def fitted_factors() -> SoftwareFactors:
    """The factors of this release."""
    table = shipped_table("planner.rl.predict", "fitted.toml")
    return SoftwareFactors(**{name: float(value) for name, value in table.items()})
