"""The values that each part of a strategy may take in one back-end, as far as whole columns go.

``Columns`` narrows the enumeration before anything is costed; the small rules of the back-end's ``space`` decide the
rest, strategy by strategy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from planner.strategy.schedules import ScheduleName
from planner.strategy.strategy import Dispatcher, RecomputeModule


@dataclass(frozen=True, slots=True)
class Columns:
    """What a back-end can run, as far as whole columns go."""

    schedules: tuple[ScheduleName, ...]
    """Schedules of a pipeline; without one (pp = 1) a strategy is called ``1f1b``."""
    cp_kinds: tuple[str, ...] = ("ring", "all_to_all")
    """Kinds of context parallelism; none = no cp at all."""
    denoiser_cp_kinds: tuple[str, ...] | None = None
    """The same of diffusion transformers; absent = as of all other models."""
    sequence_parallel: tuple[bool, ...] = (True, False)
    zero_stages: tuple[int, ...] = (0, 1, 2, 3)
    zero_stages_with_pipeline: tuple[int, ...] = (0, 1, 2, 3)
    hybrid_sharding: bool = True
    """Whether states may be sharded over a part of the data-parallel ranks (``dp_replicate`` > 1)."""
    hybrid_zero_stages: tuple[int, ...] = (1, 2, 3)
    """ZeRO stages that do so, with ``hybrid_sharding``."""
    axis_orders: tuple[int, ...] = (0, 1)
    group_factors: tuple[int, ...] = (1, 2)
    """Micro-batch groups of the interleaved schedule, in units of pp."""
    derived_group: bool = False
    """Whether torch derives that group from pp and micro-batches, which must fill whole rounds; no factors then."""
    tensor_parallel: bool = True
    repeated_kv_heads: bool = True
    """Whether tp may exceed the number of key-value heads, which are then repeated."""
    pipeline_parallel: bool = True
    apart: tuple[tuple[str, str], ...] = ()
    """Pairs of tp, cp, pp and ep of which one must be 1."""
    expert_parallel: bool = True
    expert_tensor_parallel: bool = True
    expert_tensor: Literal["any", "tp", "tp without ep"] = "any"
    """Which etp there is: any divisor of tp, tp itself, or tp itself with ep = 1 and 1 else."""
    optimizer_offload: bool = True
    activation_offload: bool = True
    overlap_ep: tuple[bool, ...] = (True,)
    dispatchers: tuple[Dispatcher, ...] = ("alltoall",)
    """Ways to send routed tokens; the search takes the one that the space's ``dispatcher`` names."""
    fp8_parameters: bool = False
    """Whether weights of layers can be stored in 8 bit (``fp8_parameters``)."""
    overlap_tp: bool = True
    """Whether tensor-parallel collectives are overlapped, which they are with sequence parallelism."""
    overlap_tp_off: bool = False
    """Whether sequence parallelism without that overlap is tried too: where rules tie it to the model or the device."""
    overlap_data: tuple[tuple[bool, bool], ...] = ((True, True),)
    """(overlap_grad_reduce, overlap_param_gather) to try; several where a back-end's rules tie them to other fields."""
    overlap_grad_with_pipeline: bool = True
    recompute: tuple[str, ...] = ("none", "selective", "full")
    selective_modules: tuple[RecomputeModule, ...] = ()
    """The one set of modules that selective recompute is there; none = any of the search's choices."""
    uniform_recompute: bool = False
    """Whether every chunk recomputes the same number of layers (a selective policy and offload: all of them)."""
    even_layers: bool = False
    """Whether every chunk holds equally many layers and one policy serves all of them."""
    empty_ends: bool = False
    """Whether the first and the last chunk of a pipeline may hold no layer, but the embedding or the head alone."""
    whole_recompute: bool = False
    """Whether full recompute, too, is every layer or none; with ``uniform_recompute``."""

    def context_kinds(self, *, denoiser: bool) -> tuple[str, ...]:
        """Kinds of context parallelism of a diffusion transformer, or of any other model."""
        return self.denoiser_cp_kinds if denoiser and self.denoiser_cp_kinds is not None else self.cp_kinds
