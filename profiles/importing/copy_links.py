"""The link observation of a group of equal copies: bytes over the typical time of one, one way."""

from __future__ import annotations

from profiles.observations.records import LinkKind, LinkObservation
from profiles.observations.timing import Timing


def copy_link(
    kind: LinkKind, ends: tuple[str, str], size_bytes: int, timing: Timing, method: str = "memcpy"
) -> LinkObservation:
    """The link observation of copies of ``size_bytes`` from ``ends[0]`` to ``ends[1]``."""
    return LinkObservation(
        kind=kind,
        source=ends[0],
        target=ends[1],
        direction="one_way",
        size_bytes=size_bytes,
        bandwidth_bytes_per_s=size_bytes / timing.time_s,
        statistic=timing.statistic,
        num_samples=timing.num_samples,
        method=method,
        detail={"time_s": timing.time_s},
    )
