"""Host traits of a back-end: what its code costs beside the kernels that it launches.

No back-end's host is free.  Those whose runs were not studied take the seconds of the kind of code that they are, from
another back-end's runs; the neutral traits alone have none, for whoever wants the device's time.
"""

from __future__ import annotations

from dataclasses import dataclass

MEGATRON_LAUNCH_S, MEGATRON_CALL_S = 30e-6, 150e-6
"""Megatron's modules of 2021 on hosts of that time: found on vTrain's one-node runs (``backends.megatron.physics``,
MEGATRON_2021)."""
CORE_LAUNCH_S, CORE_CALL_S = 15e-6, 75e-6
"""Megatron-Core under TransformerEngine: half of that.  No row of these back-ends found it.  MLPerf's LoRA runs under
NeMo (40 rows, bound by their host at four samples a node): median error 9.7 % without, 9.3 % with it, 3.4 % with the
whole; tables of NeMo and its launcher (45 rows) 4.9 and 6.3 %, 4.9 and 7.7 %, 6.2 and 9.2 %.  CUDA graphs would
take them away; a row or plan that has them is not told apart."""
EAGER_LAUNCH_S = 32e-6
"""PyTorch's eager modules, Python and autograd around a kernel: found on HF Ultra-Scale's sweep (nanotron).  Under
Hugging Face's trainer, of which no row found it: LoRA of Qwen 1.8B at 256 tokens, bound by its host, 0.18 of the
measured step without, 1.47 with; 24 rows 16 % -> 12 %."""
COMPILED_LAUNCH_S = 5e-6
"""A kernel launched by compiled code, without Python: order of a CUDA launch (prior)."""


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
