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
CORE_EXPERT_LAUNCHES, CORE_EACH_EXPERT_S = 8.0, 5e-6
"""Fitted on one run: Qwen3-235B at tp 4, ep 8, where a layer takes 9.6 ms whatever its kernels need (29.0 s of 256
micro-batches; predicted 16.3 -> 28.6 s).  Held out: the two other runs of that table that a host can hold up, 15.0 and
21.6 -> 17.7 and 27.1 s (measured 17.6, 24.2); Megatron-Bridge's Qwen3-235B on B200 0.66 -> 0.92 of what was measured,
on H100 in 8 bit 0.78 -> 0.88, gpt-oss-120b on H100 0.65 -> 0.75.  Further products of a grouped matmul: a CUDA launch
each."""
EAGER_LAUNCH_S = 32e-6
"""PyTorch's eager modules, Python and autograd around a kernel: found on HF Ultra-Scale's sweep (nanotron).  Under
Hugging Face's trainer, of which no row found it: LoRA of Qwen 1.8B at 256 tokens, bound by its host, 0.18 of the
measured step without, 1.47 with; 24 rows 16 % -> 12 %."""
BLOCKED_SHARE = 0.24
"""Part of the host seconds that each pass takes longer where launches wait for their kernels.  Two pairs of runs of a
200B model with and without, 80 and 160 devices: 97.20 and 91.04 TFLOP/s, 84.44 and 84.59: 6.8 and -0.2 % longer, where
the whole host seconds were 14.1 and 14.0 % (bigscience-workshop/bigscience@9e64edec2, train/tr11-176B-ml/
chronicles-prequel.md, 450-453).  The seconds were found on hosts that were late; these hosts are faster."""
COMPILED_LAUNCH_S = 5e-6
"""A kernel launched by compiled code, without Python: order of a CUDA launch (prior)."""
HOST_SPREAD = 0.5
"""Standard deviation of ln(host seconds): processors and Python versions differ by as much (as the prior of
``planner.predict.uncertainty`` for terms of the host).  That of hosts that were studied is in the spread of steps."""


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
    expert_launches: float = 1.0
    """What a launch around routed experts costs the host over another one: router, permutations, exchanges and grouped
    products are each a Python function of the forward and of the backward pass."""
    each_expert_s: float = 0.0
    """Host seconds of the further products of a grouped matmul that launches one for each local expert."""
    graphed: frozenset[str] = frozenset()
    """Classes of operators whose launches in a layer are a CUDA graph, which costs next to nothing."""
    graphed_on_grace: frozenset[str] = frozenset()
    """Classes that are captured where the host is an NVIDIA Grace processor."""
    host_spread: float = 0.0
    """Spread of ln(host seconds) beside that of whole steps, where the studied runs did not wait for their host and its
    seconds are another back-end's; 0 = steps that wait are among the studied ones."""
    blocking_launches: bool = False
    """Whether every launch waits for its kernel (``CUDA_LAUNCH_BLOCKING=1``), so that the host never runs ahead."""
    parameter_hooks: float = 0.0
    """Further launches in the backward pass for each weight: accumulation of its gradient into an fp32 buffer."""
    meeting_s: float = 0.0
    """Host seconds for each member of a tensor-parallel group and each of its collectives, in jobs of several nodes:
    ranks meet on the host before the collective starts, and one of them answers the others in turn."""
    waits_for_slowest: bool = True
    """Whether collectives wait for the slowest of all devices (``planner.predict.cost.slowest_device``)."""
    transfer_stall_s: float = 0.0
    """Host seconds that each transfer between stages of different nodes blocks both of them."""
