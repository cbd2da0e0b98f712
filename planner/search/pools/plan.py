"""The answer for several pools, a ``PoolsPlan``: stages with pool, sub-mesh, policy, time and memory."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planner.plan.plan import HostMemory, MemoryBill
from planner.search.pools.problem import PoolsProblem
from profiles.document import Document


class PoolStage(Document):
    """One pipeline stage: where it runs, what it holds, how, and what that costs."""

    stage: int = Field(ge=0)
    pool: str
    device: str
    devices: int = Field(gt=0, description="devices of the stage: tp x cp x dp")
    first_layer: int = Field(ge=0)
    layers: int = Field(gt=0)
    has_embedding: bool = False
    has_head: bool = False
    strategy: dict[str, Any] = Field(description="tp, sp, cp, ep, dp, micro_batch_size, zero_stage of this stage")
    recompute: Literal["none", "selective", "full"] = "none"
    recompute_modules: tuple[str, ...] = ()
    recompute_layers: int = Field(default=0, ge=0)
    optimizer_offload: bool = False
    activation_offload_layers: int = Field(default=0, ge=0)
    in_flight_microbatches: int = Field(gt=0)
    parameters_per_device: int = Field(ge=0)
    microbatch_s: float = Field(description="forward and backward of one micro-batch, relief included")
    forward_s: float = Field(description="part of microbatch_s that is the forward")
    late_s: float = Field(description="once a step: exposed reduction and gathering, optimizer")
    late_shown_s: float = Field(description="part of late_s that does not hide under the stages before it")
    hop_s: float = Field(description="one way to the next stage; 0 for the last one")
    peak_memory_bytes: MemoryBill
    memory_limit_bytes: int
    host_memory_bytes: HostMemory | None = Field(
        default=None, exclude_if=lambda value: value is None, description="where something is offloaded"
    )


class PoolUse(Document):
    """How much of a pool the plan uses."""

    pool: str
    device: str
    devices: int
    used: int
    stages: int
    layers: int
    busy_fraction: float = Field(description="stage time over the slowest stage's, mean over the used devices")


class PoolsSearch(Document):
    """What the search looked at."""

    microbatch_choices: int = Field(
        description="numbers of samples at a time that divide the batch; in a back-end with each sharding of all stages"
    )
    solved: int = Field(
        description="those whose stages were assigned; the others have a bound that is not below the plan"
    )
    sub_meshes: int
    policies: int
    labels: int
    windows: int
    proof: str


class PoolsPlan(Document):
    """The chosen pipeline over several pools, with its bound."""

    schema_version: Literal[1] = 1
    problem: PoolsProblem
    backend: str = Field(description="the software that runs it; unrestricted = a plan for study, which nothing runs")
    release: str = ""
    strategy: dict[str, Any] | None = Field(
        default=None, description="what all stages have in common where a back-end runs them; else null"
    )
    status: Literal["optimal", "feasible"]
    microbatch_samples: int
    num_microbatches: int
    schedule: Literal["1f1b"] = "1f1b"
    stages: tuple[PoolStage, ...]
    pools: tuple[PoolUse, ...]
    step_time_s: float
    tokens_per_s: float
    tokens_per_s_per_device: float = Field(description="over all devices of all pools, used or not")
    peak_memory_bytes: int = Field(description="of the stage that fills the largest part of its device")
    memory_limit_bytes: int = Field(description="of the same stage")
    fits_probability: float | None = Field(
        default=None, exclude_if=lambda value: value is None, description="chance that its device holds it"
    )
    model_flops_per_step: float
    model_flops_utilization: float = Field(description="over the peak of all devices of all pools, used or not")
    breakdown_s: dict[str, float] = Field(description="rounds of the slowest stage, fill and drain, sends, late work")
    lower_bound_s: float
    gap: float
    search: PoolsSearch
    why: tuple[str, ...]
    assumptions: tuple[str, ...]
    provenance: dict[str, Any] = Field(default_factory=dict)

    @property
    def plan_id(self) -> str:
        """SHA-256 of the canonical JSON."""
        return self.content_hash()
