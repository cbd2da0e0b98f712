"""The time of one call on the device: device events around it, or the host clock on the CPU.

Source: torch.cuda.Event, torch.xpu.Event, torch.npu.Event (``enable_timing=True``; ``elapsed_time`` in milliseconds).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from profiles.measure.device import MeasuredDevice


def seconds_of(device: MeasuredDevice, call: Callable[[], object]) -> float:
    """Seconds between the start and the end of one call on the device's current stream."""
    if device.is_host:
        start_ns = time.perf_counter_ns()
        call()
        return (time.perf_counter_ns() - start_ns) * 1e-9
    start, end = device.module.Event(enable_timing=True), device.module.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1e-3
