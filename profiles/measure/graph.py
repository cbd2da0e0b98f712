"""Graph capture: a call is replayed without the host, so that launch time leaves the measurement.

    time of one call = (t_K - t_1) / (K - 1)      t_K = one replay of a graph with K copies of the call

Source: torch.cuda.CUDAGraph and torch.cuda.graph (torch 2.13); torch.npu (torch_npu >= 2.6) and torch.xpu copy their
names.  What cannot be captured is timed with events, and the observation says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from profiles.measure.device import MeasuredDevice

_CLASSES = {"cuda": "CUDAGraph", "rocm": "CUDAGraph", "npu": "NPUGraph", "xpu": "XPUGraph"}


def can_capture(device: MeasuredDevice) -> bool:
    """Whether the backend has graphs at all."""
    return hasattr(device.module, _CLASSES.get(device.kind, "?")) and hasattr(device.module, "graph")


def capture(device: MeasuredDevice, calls: Sequence[Callable[[], object]]) -> Callable[[], object] | None:
    """A replay of all calls in order, or None where they cannot be captured.

    The calls have run before on the device's own stream: lazy initialisation is not allowed inside a capture.
    """
    if not can_capture(device):
        return None
    device.synchronize()
    graph = getattr(device.module, _CLASSES[device.kind])()
    try:
        with device.module.graph(graph, stream=device.own_stream):
            # Outputs are dropped one by one, so that the copies write to the same memory of the graph's pool.
            for call in calls:
                call()
    except RuntimeError:
        device.synchronize()
        return None
    replay: Callable[[], object] = graph.replay
    return replay
