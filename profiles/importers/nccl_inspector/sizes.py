"""The full logical tensor that the Inspector's message size stands for.

``msg_size`` is count times element size of the call: the whole buffer for all_reduce, broadcast and reduce, one rank's
part for all_gather and reduce_scatter (the plug-in itself multiplies those by the ranks for its algorithm bandwidth).
For all_to_all it depends on the version, so the algorithm bandwidth decides: it is full size over time.
"""

from __future__ import annotations

_PER_RANK = ("all_gather", "reduce_scatter")
_BY_BANDWIDTH = ("all_to_all", "gather", "scatter")


def full_size_bytes(operation: str, message_bytes: int, ranks: int, traffic_bytes: float | None) -> int:
    """Bytes of the full tensor; ``traffic_bytes`` is algorithm bandwidth times time, None where it is not given.

    Raises ValueError where the size is ambiguous or contradicts the bandwidth.
    """
    default = message_bytes * ranks if operation in _PER_RANK else message_bytes
    if traffic_bytes is None or traffic_bytes <= 0 or message_bytes == 0:
        if operation in _BY_BANDWIDTH:
            raise ValueError(f"nothing tells whether {message_bytes} bytes are one rank's part or the whole")
        return default
    factor = traffic_bytes / message_bytes
    if operation in _BY_BANDWIDTH:
        return message_bytes * ranks if abs(factor - ranks) < abs(factor - 1) else message_bytes
    expected = default / message_bytes
    if not 0.5 < factor / expected < 2:
        raise ValueError(f"size and bandwidth contradict each other by a factor of {factor / expected:.3g}")
    return default
