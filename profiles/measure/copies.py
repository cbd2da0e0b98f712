"""Copy speeds between host and device, and within the device's memory.

``num_bytes`` copied from a source that is not the target; the bandwidth is copied bytes over time, so a copy within
one memory moves twice as many.  Pageable copies include the host's staging, as a program sees it.
"""

from __future__ import annotations

from typing import Any

from profiles.measure.case import Case, Prepared, WantedShape
from profiles.measure.device import MeasuredDevice, import_torch
from profiles.measure.kind import OperatorKind
from profiles.observations.records import LinkKind, LinkObservation
from profiles.observations.timing import Timing

_PATHS: tuple[tuple[str, LinkKind, bool], ...] = (
    ("memory", "device_memory", False),
    ("host_to_device_pinned", "host_to_device", True),
    ("device_to_host_pinned", "device_to_host", True),
    ("host_to_device_pageable", "host_to_device", False),
    ("device_to_host_pageable", "device_to_host", False),
)
_ENDS: dict[LinkKind, tuple[str, str]] = {
    "device_memory": ("device:0", "device:0"),
    "host_memory": ("host:0", "host:0"),
    "host_to_device": ("host:0", "device:0"),
    "device_to_host": ("device:0", "host:0"),
}


def copy_cases(wanted: WantedShape, dtype: str) -> list[Case]:
    """All paths of a device for one number of bytes; the dtype plays no part.

    The wanted shape's ``name`` is ``host`` for a CPU (one copy in its memory), else ``device``.
    """
    size = wanted.sizes["num_bytes"]
    paths = (("memory", "host_memory", False),) if wanted.name == "host" else _PATHS
    return [
        Case(
            "copy",
            name,
            "unknown",
            "",
            {"num_bytes": size},
            2 * size,
            wanted.value,
            detail={} if name == "memory" else {"pinned": pinned},
            graph=False,
            link=link,
        )
        for name, link, pinned in paths
    ]


def prepare_copy(case: Case, device: MeasuredDevice) -> Prepared:
    """Source and target of the path."""
    torch = import_torch()
    count = max(case.shape["num_bytes"] // 4, 1)

    def host() -> Any:
        pinned = bool(case.detail.get("pinned"))
        return torch.randn(count).pin_memory() if pinned else torch.randn(count)

    def here() -> Any:
        return device.normal((count,), "fp32")

    source = host() if case.link == "host_to_device" else here()
    target = host() if case.link == "device_to_host" else here()
    waits = not case.detail.get("pinned", True)
    return Prepared(lambda: target.copy_(source, non_blocking=not waits))


def link_of(case: Case, timing: Timing | None, error: str, detail: dict[str, Any]) -> LinkObservation:
    """The observation of a finished copy: bandwidth from the median time, quantiles kept as times."""
    source, target = _ENDS[case.link or "device_memory"]
    spread = {} if timing is None else {"time_s": timing.time_s, "p10_s": timing.p10_s, "p90_s": timing.p90_s}
    size = case.shape["num_bytes"]
    return LinkObservation(
        kind=case.link or "device_memory",
        source=source,
        target=target,
        direction="one_way",
        size_bytes=size,
        bandwidth_bytes_per_s=None if timing is None else size / timing.time_s,
        statistic="unknown" if timing is None else "median",
        num_samples=None if timing is None else timing.num_samples,
        method="torch copy_",
        detail={**case.detail, **detail, **{name: value for name, value in spread.items() if value is not None}},
        ok=timing is not None,
        error=error,
    )


COPY = OperatorKind(copy_cases, prepare_copy, ("",))
