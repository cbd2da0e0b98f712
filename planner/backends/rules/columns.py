"""Which values may each part of a strategy take in one back-end, as far as whole columns go?

``Columns`` narrows the enumeration before anything is costed; the small rules of the back-end's ``space`` decide the
rest, strategy by strategy.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.strategy import ScheduleName


@dataclass(frozen=True, slots=True)
class Columns:
    """What a back-end can run, as far as whole columns go."""

    schedules: tuple[ScheduleName, ...]
    cp_kinds: tuple[str, ...] = ("ring", "all_to_all")
    """Kinds of context parallelism; none = no cp at all."""
    sequence_parallel: tuple[bool, ...] = (True, False)
    zero_stages: tuple[int, ...] = (0, 1, 2, 3)
    zero_stages_with_pipeline: tuple[int, ...] = (0, 1, 2, 3)
    hybrid_sharding: bool = True
    """Whether states may be sharded over a part of the data-parallel ranks (``dp_replicate`` > 1)."""
    axis_orders: tuple[int, ...] = (0, 1)
    group_factors: tuple[int, ...] = (1, 2)
    """Micro-batch groups of the interleaved schedule, in units of pp."""
    tensor_parallel: bool = True
    pipeline_parallel: bool = True
    apart: tuple[tuple[str, str], ...] = ()
    """Pairs of tp, cp, pp and ep of which one must be 1."""
    expert_parallel: bool = True
    expert_tensor_parallel: bool = True
    optimizer_offload: bool = True
    activation_offload: bool = True
    overlap_ep: tuple[bool, ...] = (True,)
    overlap_tp: bool = True
    """Whether tensor-parallel collectives are overlapped, which they are with sequence parallelism."""
    overlap_tp_off: bool = False
    """Whether sequence parallelism without that overlap is tried too: where rules tie it to the model or the device."""
    overlap_data: tuple[tuple[bool, bool], ...] = ((True, True),)
    """(overlap_grad_reduce, overlap_param_gather) to try; several where a back-end's rules tie them to other fields."""
    overlap_grad_with_pipeline: bool = True
    recompute: tuple[str, ...] = ("none", "selective", "full")
    uniform_recompute: bool = False
    """Whether every chunk recomputes the same number of layers (a selective policy and offload: all of them)."""
    even_layers: bool = False
    """Whether every chunk holds equally many layers and one policy serves all of them."""
    whole_recompute: bool = False
    """Whether full recompute, too, is every layer or none; with ``uniform_recompute``."""
