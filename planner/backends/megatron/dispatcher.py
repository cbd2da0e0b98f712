"""How Megatron-LM 0.19.2 sends routed tokens to their experts: which dispatchers run where, and the flags that say it.

``--moe-token-dispatcher-type`` is ``allgather`` (the release's default), ``alltoall`` or ``flex``, whose back-ends are
DeepEP, HybridEP and NCCL EP (core/transformer/moe/token_dispatcher.py).  Devices: megatron-bridge 0.6.2
training/flex_dispatcher_backend.py.  Sizes of DeepEP's groups and 8 peers a node: deepseek-ai/DeepEP @04b06f7a
deep_ep/buffer.py (``get_dispatch_config``), which Megatron asks for the group's size (fused_a2a.py:35-62).  HybridEP
between NVLink domains is part of a build for several nodes, over mlx5 NICs as DeepEP: branch hybrid-ep @94a9f8f6
csrc/hybrid_ep/backend/hybrid_ep_backend.cuh:10-18; NVIDIA's own recipes use it so (megatron-bridge 0.6.2, Qwen3-30B-A3B
with ep 16 on nodes of eight).
"""

from __future__ import annotations

from collections.abc import Mapping

from planner.backends.megatron.arguments import Words
from planner.backends.rules.rule import RuleInput
from planner.strategy.strategy import Dispatcher, Strategy

TYPE = "--moe-token-dispatcher-type"
FLEX_BACKEND = "--moe-flex-dispatcher-backend"
DEEPEP_RANKS = frozenset({2, 4, 8, 16, 24, 32, 64, 128, 144, 160})
DEEPEP_PEERS = 8
"""Ranks of one node: beyond them every node has so many."""
FLEX_ARCHITECTURES = frozenset({"ampere", "hopper", "blackwell"})
WITHOUT_VERBS: Mapping[str, str] = {
    "efa": "EFA",
    "tcpx": "GPUDirect-TCPX",
    "ethernet": "TCP over Ethernet",
    "slingshot": "Slingshot",
}
"""NICs that a kernel cannot write through: DeepEP asks for NVSHMEM's IBGDA, which knows mlx5 devices alone, InfiniBand
and RoCE (deepseek-ai/DeepEP#9, #369 and #759; Megatron-Bridge's Qwen3 crashes over EFA at ep 16 of 8 devices a node and
ran at ep 8, NVIDIA-NeMo/Megatron-Bridge#3343)."""
FLEX: tuple[Dispatcher, ...] = ("deepep", "hybridep")
TITLES: Mapping[Dispatcher, str] = {
    "alltoall": "all-to-all",
    "allgather": "all-gather",
    "deepep": "DeepEP",
    "hybridep": "HybridEP",
}


def usual_dispatcher(given: RuleInput) -> Dispatcher:
    """DeepEP, or HybridEP where NVLink joins more devices than a node of eight; an all-to-all where neither runs."""
    wanted: Dispatcher = "hybridep" if given.scale_up_devices > DEEPEP_PEERS else "deepep"
    return "alltoall" if _unasked(given, wanted) else wanted


def dispatcher_problem(given: RuleInput) -> str | None:
    """Why the strategy's dispatcher would not run; None where it does, and where there is nothing to send."""
    s = given.strategy
    if s.ep == 1 or s.dispatcher == "alltoall":
        return None
    if s.dispatcher == "allgather":
        return "overlap_ep needs the dispatcher alltoall, deepep or hybridep" if s.overlap_ep else None
    return flex_problem(given, s.dispatcher)


def flex_problem(given: RuleInput, wanted: Dispatcher) -> str | None:
    """Why a back-end of the flex dispatcher does not run for these degrees on these devices; None where it does.

    Nothing is said while the devices are not known.
    """
    s, title = given.strategy, TITLES[wanted]
    if s.etp > 1:
        return f"{title} sends a token to every tensor-parallel rank of its experts, which is not priced: etp must be 1"
    if given.workload.precision == "fp16":
        return f"{title} sends bf16 tokens only; use dispatcher alltoall with fp16"
    if given.architecture and given.architecture.lower() not in FLEX_ARCHITECTURES:
        return f"{title} runs on NVIDIA Ampere, Hopper and Blackwell devices; use dispatcher alltoall"
    if given.scale_up_kind and given.scale_up_kind != "switch":
        return f"{title} needs devices of a node behind one NVLink switch; use dispatcher alltoall"
    domain = given.scale_up_devices
    if wanted == "deepep" and s.ep not in DEEPEP_RANKS:
        return f"DeepEP has no configuration for ep={s.ep}: {', '.join(map(str, sorted(DEEPEP_RANKS)))}"
    if not domain or s.ep <= domain:
        return f"DeepEP's ranks of a node are at most {DEEPEP_PEERS}" if wanted == "deepep" and _wide(given) else None
    if given.nic_transport in WITHOUT_VERBS:
        named = WITHOUT_VERBS[given.nic_transport]
        return f"{title} beyond a node needs InfiniBand or RoCE NICs, these are {named}; use dispatcher alltoall"
    if wanted == "deepep" and domain != DEEPEP_PEERS:
        return f"DeepEP beyond a node needs {DEEPEP_PEERS} devices in each"
    return None


def _unasked(given: RuleInput, wanted: Dispatcher) -> str | None:
    """Why a back-end of the flex dispatcher is not taken unless it is asked for: it does not run, or not as built."""
    if problem := flex_problem(given, wanted):
        return problem
    if wanted == "hybridep" and 0 < given.scale_up_devices < given.strategy.ep:
        return "HybridEP beyond one NVLink domain needs a build for several nodes"
    return None


def _wide(given: RuleInput) -> bool:
    return given.scale_up_devices > DEEPEP_PEERS and given.strategy.ep > DEEPEP_PEERS


def dispatcher_flags(s: Strategy) -> dict[str, Words]:
    """The flags of the strategy's dispatcher, for a model with experts."""
    if s.dispatcher in FLEX:
        return {TYPE: ("flex",), FLEX_BACKEND: (s.dispatcher,)}
    return {TYPE: (s.dispatcher,)}


def dispatcher_reason(given: RuleInput) -> str:
    """Why the dispatcher is the one that it is, for the comment above its flag and the plan's assumptions."""
    s = given.strategy
    if s.ep == 1:
        return "without expert parallelism nothing is sent, whatever the type"
    if s.dispatcher in FLEX:
        return f"{TITLES[s.dispatcher]} sends a token once to each node and device that holds experts of its"
    if s.dispatcher == "allgather":
        return "every rank gets all tokens; asked for, the search takes another one"
    wanted: Dispatcher = "hybridep" if given.scale_up_devices > DEEPEP_PEERS else "deepep"
    return f"the exchange that the plan's time is of; {_unasked(given, wanted) or 'flex was not asked for'}"
