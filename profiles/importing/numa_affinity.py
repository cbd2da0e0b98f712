"""The NUMA node behind the cells of a link matrix row: CPU lists and NUMA numbers look alike.

The columns are ``CPU Affinity``, ``NUMA Affinity`` and ``GPU NUMA ID`` (nvidia-smi) or ``Node Affinity`` and ``CPU
Affinity`` (mx-smi).  Terminals shift them and an empty CPU list leaves no mark, so they are told apart by their number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_CPU_LIST = re.compile(r"\d+(?:-\d+)?(?:,\d+(?:-\d+)?)*\Z")


def numa_of_row(rest: Sequence[str], columns: Sequence[str]) -> int | None:
    """The NUMA node, or None where the row does not say exactly one."""
    values = [token for token in rest if _CPU_LIST.match(token) or token in ("N/A", "-")]
    names = [name for name in columns if name != "gpu numa id"]
    if "gpu numa id" in columns and len(values) > 1:
        values = values[:-1]
    numa_column = next((name for name in names if name in ("numa affinity", "node affinity")), None)
    if numa_column is None or not values:
        return None
    # One value for two columns: a list of CPUs has a range or a comma in it, a NUMA number has not.
    value = values[names.index(numa_column)] if len(values) >= len(names) else values[0]
    return int(value) if value.isdigit() and len(value) < 6 else None
