"""The planner's degrees and ZeRO stages in torchtitan's words, and back.

torchtitan always wraps the model in FSDP2: ``data_parallel_shard_degree`` times ``context_parallel_degree`` ranks share
the parameters, ``data_parallel_replicate_degree`` groups of them repeat each other.  How long gathered parameters stay
is ``fsdp_reshard_after_forward``; together they say the ZeRO stage::

    0  plain data parallelism   replicate = dp, shard = 1, policy "default" (nothing to gather)
    1  with a pipeline          policy "never": whole gradients until the last micro-batch
    2  without a pipeline       policy "never": gradients are scattered after every micro-batch
    3  without a pipeline       policy "always"

Sources: torchtitan 0.3.0 distributed/fsdp.py:59-82, torch 2.13.0 distributed/pipelining/stage.py
(backward_maybe_with_nosync).
"""

from __future__ import annotations

from planner.backends.rules.pipeline import interleaved_group_size
from planner.strategy.schedules import GROUPED_SCHEDULES, ScheduleName
from planner.strategy.strategy import OPERATOR_MODULES, RecomputePolicy, Strategy

SCHEDULES: dict[ScheduleName, str] = {
    "1f1b": "1F1B",
    "gpipe": "GPipe",
    "interleaved": "Interleaved1F1B",
    "zbv": "ZBVZeroBubble",
    "dualpipev": "DualPipeV",
    "looped_bfs": "LoopedBFS",
    "interleaved_zb": "InterleavedZeroBubble",
}
"""The planner's name -> torch's class without ``Schedule`` (torch 2.13.0 schedules.py:3620-3644)."""
SPLIT_BACKWARD_SCHEDULES: frozenset[ScheduleName] = frozenset({"zbv", "dualpipev", "interleaved_zb"})
"""They split backward passes, which fails on what torch.compile compiled, layers and loss (rule P6)."""
POLICIES: dict[int, str] = {0: "default", 1: "never", 2: "never", 3: "always"}
RECOMPUTE: tuple[RecomputePolicy, ...] = ("none", "selective", "full")
SELECTIVE_MODULES = OPERATOR_MODULES
"""What torchtitan's selective policy certainly recomputes (and every second matrix product besides)."""


def replicate_degree(strategy: Strategy) -> int:
    """``data_parallel_replicate_degree``."""
    return strategy.dp_replicate if strategy.zero_stage else strategy.dp


def shard_degree(strategy: Strategy) -> int:
    """``data_parallel_shard_degree``."""
    return strategy.dp_shard if strategy.zero_stage else 1


def zero_stage(policy: str, pp: int) -> int:
    """The ZeRO stage that a policy means."""
    return {"default": 0, "never": 1 if pp > 1 else 2, "always": 3}[policy]


def expert_tensor_degree(tp: int, ep: int, *, experts: bool) -> int:
    """Experts are split over tp without ep, and not at all with it (0.3.0 models/common/moe_sharding.py:29, 50)."""
    return tp if experts and ep == 1 else 1


def group_size(strategy: Strategy) -> int:
    """``microbatch_group_size``: torch derives it."""
    if strategy.schedule not in GROUPED_SCHEDULES or strategy.pp == 1:
        return 0
    return interleaved_group_size(strategy.pp, strategy.num_microbatches)
