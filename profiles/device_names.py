"""Catalogue devices by the names that drivers and tools print, such as "NVIDIA H100 80GB HBM3".

A name is recognised only if it is certain; memory size and form factor decide between variants.  Unknown = None: an
observation of an unknown device is stored under its reported name and never used for another device.
"""

from __future__ import annotations

import re
from functools import cache

from profiles.shipped_tables import shipped_table


@cache
def device_rules() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Pattern and catalogue device, in the order in which they are asked (``device_names.toml``)."""
    return tuple(
        (re.compile(pattern), name) for pattern, name in shipped_table("profiles", "device_names.toml")["rules"]
    )


def catalogue_device(reported: str) -> str | None:
    """Catalogue name of a device as reported by a driver or tool; None if it is not certain."""
    plain = reported.casefold().strip()
    return next((name for pattern, name in device_rules() if pattern.search(plain)), None)
