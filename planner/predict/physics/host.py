"""Host traits of a back-end: what its code costs beside the kernels that it launches."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class HostTraits:
    """Host seconds of launches, calls and hooks; the defaults are a host that is never late."""

    launch_s: float = 0.0
    """Host seconds to launch one kernel, Python around it included; 0 = the host is never late (CUDA graphs)."""
    call_s: float = 0.0
    """Host seconds of Python around each operator (and collective) of a forward pass: module calls, views, checks.  A
    backward pass is run by autograd's C++ engine, without them."""
    collective_launches: float = 3.0
    """Launches that one tensor-parallel collective costs the host: the collective, its stream waits, its buffers."""
    parameter_hooks: float = 0.0
    """Further launches in the backward pass for each weight: accumulation of its gradient into an fp32 buffer."""
    meeting_s: float = 0.0
    """Host seconds for each member of a tensor-parallel group and each of its collectives, in jobs of several nodes:
    ranks meet on the host before the collective starts, and one of them answers the others in turn."""
    waits_for_slowest: bool = True
    """Whether collectives wait for the slowest of all devices (``planner.predict.cost.slowest_device``)."""
    transfer_stall_s: float = 0.0
    """Host seconds that each transfer between stages of different nodes blocks both of them."""
