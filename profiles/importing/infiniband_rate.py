"""The bytes a second of InfiniBand rates such as ``4xNDR``: data rate after line coding, one-way.

Gbit/s a lane: SDR 2, DDR 4, QDR 8 (8b/10b taken off), FDR10 10, FDR 13.64, EDR 25, HDR 50, NDR 100, XDR 200.
Source: InfiniBand Trade Association, InfiniBand roadmap; the first three as signalling rate x 8/10.
"""

from __future__ import annotations

import re

_LANE_GBIT_PER_S = {
    "SDR": 2.0, "DDR": 4.0, "QDR": 8.0, "FDR10": 10.0, "FDR": 13.64, "EDR": 25.0, "HDR": 50.0, "NDR": 100.0,
    "XDR": 200.0,
}  # fmt: skip
_RATE = re.compile(r"\b(1|2|4|8|12)x ?(SDR|DDR|QDR|FDR10|FDR|EDR|HDR|NDR|XDR)\b", re.IGNORECASE)


def infiniband_rate_bytes_per_s(text: str) -> float | None:
    """The first rate that stands in the text; None if there is none (``4x ???``)."""
    match = _RATE.search(text)
    if not match:
        return None
    return int(match.group(1)) * _LANE_GBIT_PER_S[match.group(2).upper()] * 1e9 / 8
