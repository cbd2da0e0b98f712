"""The rates of collectives that run at the same time: max-min fair shares of the links that they load.

All rates rise together until a link is full; the collectives on it keep what they have, the others rise on
(progressive filling; Bertsekas and Gallager, Data Networks, section 6.5.2).  No collective can then be faster without
one that is no faster becoming slower.
"""

from __future__ import annotations

import numpy as np

from profiles.fabric.fabric import Fabric, Floats
from profiles.fabric.traffic import Load

FULL = 1e-9
"""Part of a link's capacity below which the rest of it counts as none."""


def fair_rates(fabric: Fabric, load: Load) -> Floats:
    """[collective]: bytes of the buffer a second; infinite for one that loads no link, 0 over a lost one."""
    rates = np.full(load.num_collectives, np.inf)
    capacity = np.repeat(fabric.capacity_bytes_per_s, 2)
    link, own, amount = load.link, load.collective, load.amount
    left, level = capacity.copy(), 0.0
    while len(link):
        total = np.bincount(link, weights=amount, minlength=len(capacity))
        used = total > 0
        step = float((left[used] / total[used]).min())
        level += step
        left = left - step * total
        full = used & (left <= FULL * capacity)
        stopped = np.zeros(load.num_collectives, dtype=bool)
        stopped[own[full[link]]] = True
        rates[stopped] = level
        going = ~stopped[own]
        link, own, amount = link[going], own[going], amount[going]
    return rates
