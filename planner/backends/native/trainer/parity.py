"""The largest difference allowed between a run on ranks and one process: in fp32, summed in another order."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple

from planner.errors import BackEndRefused

PARITY_TOLERANCE = 1e-5
"""Largest relative difference of a loss to the single process that ``--single-process-check`` accepts, in fp32."""
NORM_TOLERANCE = 1e-4
"""The same for gradient norms: summed in another order on every mesh, and from the second step on of weights that Adam
moved by its learning rate whatever the size of their gradients."""


class Difference(NamedTuple):
    """Largest relative difference of one quantity over all steps, and the most that is accepted."""

    name: str
    found: float
    limit: float


def require_parity(differences: Sequence[Difference], where: str, hint: str | None = None) -> None:
    """Say how far the run is from one process, the first quantity's.  Raises BackEndRefused when one is too far."""
    print(f"largest relative difference to a single process: {differences[0].found:.2e}", file=sys.stderr, flush=True)
    for name, found, limit in differences:
        # Not a number is too far as well.
        if not found <= limit:
            raise BackEndRefused(
                f"{name} differ by {found:.2e} from a single process, more than {limit:.0e}", where=where, hint=hint
            )
