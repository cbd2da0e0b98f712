"""The part of a communication that is hidden behind compute, and the cost of hiding it.

A window of compute ``w`` hides at most ``f w`` of communication ``c`` (``f = WINDOW_FRACTION``); a part ``tail`` of it
can never be hidden (the last bucket); what is hidden slows the compute down::

    exposed(c, w) = max( (tail + slowdown) c,   c - (1 - slowdown) f w )

Never free: the slowdown is the fallback of a measured pair (Galvatron's shipped overlap coefficient 1.1256; average
compute slowdown 18.9 % in arXiv 2507.03114).  The function never falls when ``c`` grows and never
exceeds ``c``: overlap is never slower than no overlap.
"""

from __future__ import annotations

import numpy as np

from solver.arrays import Array

WINDOW_FRACTION = 0.85
SLOWDOWN = 0.13


def exposed_s(
    communication_s: Array,
    window_s: Array,
    tail_fraction: Array | float = 0.0,
    slowdown: Array | float = SLOWDOWN,
) -> Array:
    """Seconds that an overlapped communication adds to the step; ``tail_fraction`` of it can never be hidden."""
    hidden_gain_s = (1.0 - slowdown) * WINDOW_FRACTION * window_s
    return np.maximum((tail_fraction + slowdown) * communication_s, communication_s - hidden_gain_s)
