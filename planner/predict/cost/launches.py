"""Host time to launch what one layer runs, and when the device waits for it.

Kernels are queued: while the device is busy the host runs ahead, so a layer takes the longer of the two::

    host_s  = launch_s * (kernels + expert_launches * those around routed experts + collective_launches * collectives)
            + each_expert_s * (local experts - 1) * products                 of a grouped matmul: one, backward two
            + call_s * (operators + collectives)          forward only: Python around them
            + launch_s * parameter_hooks * weights        backward only
            + meeting_s * tp * collectives
    layer_s = max(device_s, host_s)                       separately forward and backward

Where a launch waits for its kernel (``blocking_launches``) nothing is queued, and a part of the host's seconds adds to
the device's: ``layer_s = max(device_s + BLOCKED_SHARE host_s, host_s)``.

Kernels of an operator are counted by class: a matmul is one forward and two backward; a fused point-wise operator one
and one; PyTorch's eager operators run a norm, a gated activation or a rotation as several.  A replayed operator is
launched again, by Python, in the backward pass.  The two ends of the model are floored like layers.  Small
micro-batches, small shards and small models are bound by this floor: their time does not fall when tensor parallelism
splits the work further.

Source: the queue model is CUDA's stream semantics; floors of 3 to 5 ms a layer whatever the tp degree are visible in
published sweeps (vTrain on A100, HF Ultra-Scale on H100).

``meeting_s``: in some runs the ranks of a group meet on the host before each collective (torch's collective checks,
TORCH_DISTRIBUTED_DEBUG=DETAIL, do so: a barrier over TCP in which one rank answers the others in turn), which costs
time in proportion to the group, whatever is sent.  Shape letter: K keys.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from planner.model.operator import Operator
from planner.predict.cost.ring_attention import STEP_KERNELS, further_steps
from planner.predict.layer_keys import LayerKeys
from planner.predict.physics.host import BLOCKED_SHARE
from planner.predict.physics.physics import Physics
from solver.arrays import Array

FUSED_KERNELS: dict[str, tuple[float, float]] = {
    "matmul": (1, 2),
    "grouped_matmul": (1, 2),
    "router": (2, 3),
    "attention": (2, 3),
    "norm": (1, 2),
    "activation": (1, 1),
    "rope": (2, 2),
    "residual": (1, 1),
    "permute": (2, 2),
    "embedding": (1, 2),
    "cross_entropy": (3, 2),
    "chunk_scan": (7, 12),
    "selective_scan": (1, 1),
    "convolution": (1, 2),
    "gate": (1, 1),
    "index_scores": (3, 4),
    "weight_pass": (1, 1),
}
"""Kernels of one operator forward and backward where point-wise work is fused."""
EXPERT_KERNELS: dict[str, dict[str, tuple[float, float]]] = {
    "expert": {"router": (12, 12), "expert_choice": (0, 0), "dispatch": (23, 8), "combine": (6, 5)},
    "node": {"router": (12, 12), "expert_choice": (0, 0), "dispatch": (12, 5), "combine": (3, 4)},
    "gathered": {"router": (12, 12), "expert_choice": (0, 0), "dispatch": (15, 8), "combine": (4, 4)},
    "padded": {"router": (17, 13), "expert_choice": (0, 0), "dispatch": (12, 8), "combine": (5, 5)},
}
"""Launches around routed experts by what the dispatcher sends once (``Physics.dispatch``), read off Megatron-Core
0.19.2 (transformer/moe/) with fused router and permutation.

Router: product and cast, fused top-k, scores and fused auxiliary loss, its collective, the log of it.  All-to-all
dispatch: counting tokens (sums, gather of counts, copies to the host: 12), row map and permutation (3), exchange of
tokens and of probabilities (3 each), sorting by expert (2); back: sorting, exchange, un-permutation.  DeepEP: indices
and layout (5), counting and sending (2), one-hot rows (2), permutation (3); back: un-permutation, combine.  Gathered:
map, probabilities and tokens (3), local columns and counts (5), permutation (3), local probabilities (4); back:
un-permutation, cast, scatter, cast.

Padded: an all-to-all of one size for every expert (``Physics.pads_experts``; NVIDIA/Megatron-LM@d98e8a64d, moe_utils.py
1052-1083, token_dispatcher.py 517-535, 757-779, 803-812).  The router also picks each expert's tokens (top-k, zeros,
scatter, cast, product); one fill stands for counting and a copy for each sorting.
"""
ENDS = frozenset({"embedding", "head", "mtp"})
EAGER_KERNELS: dict[str, tuple[float, float]] = {
    "norm": (6, 10),
    "activation": (3, 5),
    "rope": (10, 10),
    "residual": (2, 2),
    "attention": (6, 10),
    "cross_entropy": (8, 6),
}
"""The same from PyTorch's eager operators: a norm casts, squares, averages, scales; a rotation cuts and joins halves;
transposes and copies surround attention."""
UNFUSED_ATTENTION_KERNELS = (6.0, 10.0)
"""Two batched matmuls, softmax, dropout and copies around them; backward four matmuls and the gradients of the rest."""
SOFTMAX_GROUP = 4
"""Megatron's fused softmax kernel takes score tables in groups of four (heads times samples of a micro-batch)..."""
EAGER_SOFTMAX_CALLS, EAGER_SOFTMAX_KERNELS = 4.0, (5.0, 5.0)
"""... otherwise a cast, a scale, a mask, a softmax and a cast run one by one (megatron/model/fused_softmax.py)."""


EXPERT_BIAS_KERNELS = (2.0, 5.0)
"""Kernels of an eager output bias a local expert, forward (product, sum) and backward (two products, their sums, a
cast); see ``planner.predict.cost.operator_time.EXPERT_BIAS_BYTES``."""

WEIGHTED_KERNELS = (3.0, 6.0)
"""An ungated non-linearity of experts, a product with probabilities and a cast; backward also the sums."""


def has_eager_bias(operator: Operator, physics: Physics) -> bool:
    """Whether routed experts' output gets a bias from PyTorch's own operators."""
    routed = operator.op_class == "grouped_matmul" and operator.shard == "expert_row"
    return physics.eager_expert_bias and routed and operator.replicated_parameters > 0


def has_eager_weights(operator: Operator, physics: Physics) -> bool:
    """Whether the router's probabilities multiply experts' ungated activations by PyTorch's own operators."""
    ungated = operator.op_class == "activation" and operator.read_width == operator.write_width
    return physics.eager_expert_weights and ungated and operator.module == "moe"


def host_s(
    operators: Sequence[Operator],
    keys: LayerKeys,
    traits: Physics,
    replayed: Collection[str] | None = None,
    meeting_s: Array | None = None,
    *,
    casts: bool = False,
) -> tuple[Array, Array]:
    """Host seconds of the forward and the backward pass of one layer: two [K].

    ``replayed``: only these operators, for what a recompute launches again.  ``meeting_s``: for each tensor-parallel
    collective, where its ranks meet on the host first.  ``casts``: matmuls run in 8 bit.
    """
    forward, backward, calls, experts = (np.zeros(len(keys)) for _ in range(4))
    for operator in operators:
        if replayed is not None and operator.name not in replayed:
            continue
        if operator.op_class in traits.graphed and operator.module not in ENDS:
            continue
        weight = traits.expert_launches if operator.module == "moe" else 1.0
        kernels = tuple(
            weight * (each + casts_of(operator, casts=casts)) for each in kernels_of(operator, traits, keys)
        )
        forward += kernels[0]
        backward += kernels[1] + (traits.parameter_hooks if operator.parameters and not operator.frozen else 0.0)
        if operator.op_class == "grouped_matmul" and traits.each_expert_s:
            further = np.maximum(operator.num_experts / keys.ep, 1.0) - 1.0
            experts = experts + further
        if has_eager_bias(operator, traits):
            local = np.maximum(operator.num_experts / keys.ep, 1.0)
            forward += EXPERT_BIAS_KERNELS[0] * local
            backward += EXPERT_BIAS_KERNELS[1] * local
        calls += 1.0
        if operator.op_class == "attention":
            steps = further_steps(keys)
            forward += steps * (kernels[0] + STEP_KERNELS)
            backward += steps * (kernels[1] + STEP_KERNELS)
            calls += steps
        if operator.shard == "row":
            collectives = np.where(keys.tp > 1, np.where(keys.sp > 0, 2.0, 1.0), 0.0)
            forward += traits.collective_launches * collectives
            backward += traits.collective_launches * collectives
            calls += collectives
        if operator.op_class == "attention" and traits.attention == "unfused":
            eager = (keys.micro_batch_size * operator.num_heads / keys.tp) % SOFTMAX_GROUP != 0
            forward += np.where(eager, EAGER_SOFTMAX_KERNELS[0], 0.0)
            backward += np.where(eager, EAGER_SOFTMAX_KERNELS[1], 0.0)
            calls += np.where(eager, EAGER_SOFTMAX_CALLS, 0.0)
    each_s = traits.each_expert_s * experts
    forward_s = traits.launch_s * forward + traits.call_s * calls + each_s
    backward_s = traits.launch_s * backward + 2.0 * each_s
    if meeting_s is None:
        return forward_s, backward_s
    met = [operator for operator in operators if replayed is None or operator.name in replayed]
    meetings = [_collectives(operator, keys) for operator in met]
    return (
        forward_s + meeting_s * sum((pair[0] for pair in meetings), start=np.zeros(len(keys))),
        backward_s + meeting_s * sum((pair[1] for pair in meetings), start=np.zeros(len(keys))),
    )


def launched_s(device_s: Array, host_seconds: Array, traits: Physics) -> Array:
    """Seconds of a pass that takes the device ``device_s`` and the host ``host_seconds`` to launch: [K]."""
    if traits.blocking_launches:
        device_s = device_s + BLOCKED_SHARE * host_seconds
    return np.maximum(device_s, host_seconds)


def _collectives(operator: Operator, keys: LayerKeys) -> tuple[Array, Array]:
    """Tensor-parallel collectives around one operator, forward and backward: two [K].

    A row-parallel matmul stands for its column-parallel partner too.  Under sp: gather and scatter each way, and the
    saved input gathered once more.  The vocabulary-split loss sums three times.
    """
    sp = keys.sp > 0
    if operator.shard == "row":
        return np.where(sp, 2.0, 1.0), np.where(sp, 3.0, 1.0)
    if operator.shard != "vocabulary":
        return np.zeros(len(keys)), np.zeros(len(keys))
    if operator.op_class == "cross_entropy":
        return np.full(len(keys), 3.0), np.zeros(len(keys))
    if operator.op_class == "matmul":
        return np.where(sp, 1.0, 0.0), np.where(sp, 2.0, 1.0)
    return np.ones(len(keys)), np.where(sp, 1.0, 0.0)


def _as_sent(own: tuple[float, float], name: str, keys: LayerKeys) -> tuple[Array | float, Array | float]:
    """The same under the keys' dispatchers; ``own``: of the back-end's own one."""
    if not (keys.once.any() or keys.gathered.any()):
        return own
    once, gathered = EXPERT_KERNELS["node"][name], EXPERT_KERNELS["gathered"][name]
    forward, backward = (
        np.where(keys.once, once[way], np.where(keys.gathered, gathered[way], own[way])) for way in (0, 1)
    )
    return forward, backward


def casts_of(operator: Operator, *, casts: bool) -> float:
    """Kernels that bring a matmul's input (backward: its gradient) into 8 bit, where matmuls run so."""
    return 1.0 if casts and operator.op_class in ("matmul", "grouped_matmul") and operator.module != "head" else 0.0


def kernels_of(operator: Operator, traits: Physics, keys: LayerKeys) -> tuple[Array | float, Array | float]:
    """Kernels of one operator, forward and backward; of the exchange of routed tokens as each key sends them."""
    if operator.module == "moe":
        found = EXPERT_KERNELS["padded" if traits.pads_experts else traits.dispatch].get(operator.name)
        if found is not None:
            return _as_sent(found, operator.name, keys)
    if has_eager_weights(operator, traits):
        return WEIGHTED_KERNELS
    if operator.op_class == "attention" and traits.attention == "unfused":
        return UNFUSED_ATTENTION_KERNELS
    eager = EAGER_KERNELS.get(operator.op_class) if traits.eager_pointwise else None
    return eager or FUSED_KERNELS[operator.op_class]
