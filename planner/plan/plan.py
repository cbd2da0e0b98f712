"""The answer, a ``Plan``: immutable, self-contained, content-addressed.

A plan embeds the problem that it answers, so that ``emit``, ``explain`` and ``sensitivity`` need nothing else.
Wall-clock figures are not part of it: the same problem gives the byte-identical plan.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from pydantic import Field, ModelWrapValidatorHandler, PrivateAttr, model_validator

from planner.question.older_documents import plan_of_today
from planner.question.problem import Problem
from planner.strategy.strategy import Strategy
from profiles.document import Document, canonical_json

PlanStatus = Literal["optimal", "feasible", "infeasible"]
"""What is proved of the plan's own step time: optimal = no plan is faster, feasible = a faster one is not excluded, or
is known (``fastest``); infeasible: only from ``estimate`` of a strategy that does not fit; never stored."""
PlanOutcome = Literal["optimal", "recommended", "feasible", "infeasible"]
FINAL: tuple[PlanOutcome, ...] = ("optimal", "recommended")
"""What a new search of the same question could not better."""


class MemoryBill(Document):
    """Peak memory of the worst rank of a stage, itemised, in bytes."""

    weights: int
    gradients: int
    optimizer: int
    activations: int
    buffers: int = Field(
        description="buckets, gathered units, logits, dispatch buffers, communicators, the back-end's own"
    )
    total: int


class ChunkPlan(Document):
    """One model chunk (virtual stage) of a stage: consecutive layers and what else sits there."""

    chunk: int = Field(ge=0, description="position along the model, 0 .. pp*vpp-1")
    first_layer: int = Field(ge=0)
    num_layers: int = Field(ge=0)
    has_embedding: bool = False
    has_head: bool = False
    num_mtp_layers: int = 0


class StageRecompute(Document):
    """Which policy the stage uses, and for how many layers of each of its chunks (the first ones)."""

    policy: Literal["none", "selective", "full"]
    modules: tuple[str, ...] = ()
    num_layers_per_chunk: tuple[int, ...] = ()


class StageOffload(Document):
    """What the stage keeps in host memory."""

    optimizer: bool = False
    activation_layers: int = Field(default=0, ge=0, description="layers whose saved activations go to the host")


class HostMemory(Document):
    """What one device of a stage keeps in the memory of its node, and how much of that memory is for it."""

    optimizer: int = Field(description="optimizer states")
    activations: int = Field(description="kept activations of the layers that are offloaded")
    total: int
    limit: int = Field(gt=0, description="its part of the node's memory that a plan may use")

    @property
    def missing(self) -> int:
        """Bytes over the limit; negative where some are spare."""
        return self.total - self.limit


class StagePlan(Document):
    """One pipeline rank: its chunks, recompute, offload, memory and time of a micro-batch."""

    stage: int = Field(ge=0)
    layers: int = Field(ge=0, description="transformer layers on the stage, all chunks")
    chunks: tuple[ChunkPlan, ...]
    recompute: StageRecompute
    offload: StageOffload
    peak_memory_bytes: MemoryBill
    host_memory_bytes: HostMemory | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="where something is offloaded; not in older plans",
    )
    parameters_per_device: int
    forward_s: float = Field(description="one micro-batch, all chunks")
    backward_s: float = Field(description="one micro-batch, all chunks, recompute included")
    weight_gradient_s: float = Field(description="part of backward_s that only weight gradients need")
    chunk_forward_s: tuple[float, ...] = Field(
        default=(), exclude_if=lambda value: not value, description="forward_s chunk by chunk; not in older plans"
    )
    chunk_backward_s: tuple[float, ...] = Field(
        default=(), exclude_if=lambda value: not value, description="backward_s chunk by chunk"
    )
    chunk_weight_gradient_s: tuple[float, ...] = Field(
        default=(), exclude_if=lambda value: not value, description="weight_gradient_s chunk by chunk"
    )


class Alternative(Document):
    """A runner-up: a different strategy with its own numbers."""

    strategy: dict[str, Any]
    step_time_s: float
    peak_memory_bytes: int
    slower_by: float = Field(description="step time over the plan's, minus one")
    differs_in: tuple[str, ...]
    fits_probability: float | None = Field(
        default=None, exclude_if=lambda value: value is None, description="as the plan's"
    )


class SearchReport(Document):
    """What the search looked at."""

    enumerated: int
    pruned: dict[str, int] = Field(description="strategies by why they were not solved; enumerated less evaluated")
    refused: dict[str, int] = Field(
        default_factory=dict, description="combinations of degrees that a rule refused before anything was enumerated"
    )
    bounded: int
    evaluated: int
    proof: str


class BackEndAnswer(Document):
    """What one back-end makes of the question: its own best plan under its own physics, or the reason why not.

    ``step_time_s`` is proved best in the back-end's space up to ``gap``; ``slower_by`` is over the fastest plan's.
    """

    backend: str
    release: str
    step_time_s: float | None = None
    slower_by: float | None = None
    lower_bound_s: float | None = None
    gap: float | None = None
    strategy: dict[str, Any] | None = None
    peak_memory_bytes: int | None = None
    fits_probability: float | None = Field(
        default=None, exclude_if=lambda value: value is None, description="as the plan's"
    )
    reason: str | None = Field(default=None, description="why it has no plan; absent where it has one")


class UnrestrictedAnswer(Document):
    """What no back-end can run yet: the best of the whole declared space under the neutral physics, within ``gap``."""

    step_time_s: float
    faster_by: float = Field(description="one minus its step time over the fastest plan's")
    gap: float
    strategy: dict[str, Any]
    differs_in: tuple[str, ...]
    why: str


class FastestPlan(Document):
    """The fastest plan of a question that prefers the recommended one, and what choosing the other one costs and gives.

    Where ``is_recommended``, both are the same plan.
    """

    is_recommended: bool
    status: PlanStatus = Field(description="whether it is proved to be the fastest")
    step_time_s: float
    slower_by: float = Field(description="the plan's step time over this one's, minus one")
    band: float = Field(description="predicted ratio less one that the model cannot tell apart")
    peak_memory_bytes: int
    fits_probability: float
    strategy: dict[str, Any]
    differs_in: tuple[str, ...]
    mechanisms: tuple[str, ...] = Field(description="what has to be switched on for it")
    plan_mechanisms: tuple[str, ...] = Field(description="what has to be switched on for the plan")
    price: str = Field(description="the plan against this one, in words; empty where they are the same")


class Origins(Document):
    """Where each decision of an estimate comes from: field -> value, every field of the strategy in one of the three.

    ``layers``: of each chunk along the model.  ``relieved_layers``: so many of each chunk recompute or offload, one
    number a stage; it is chosen where the strategy says ``where-needed``.
    """

    given: dict[str, int | str | bool] = Field(description="held exactly as it was given")
    default: dict[str, int | str | bool] = Field(
        description="left out, and filled in: the field's documented default, or what the back-end or the given fields"
        " leave"
    )
    chosen: dict[str, int | str | bool] = Field(description="left out, and searched by the planner")


class Bound(NamedTuple):
    """No plan of the searched spaces is faster, and how much faster another plan could be at most."""

    step_time_s: float
    gap: float


class Plan(Document):
    """The chosen strategy of one back-end with its stages, numbers, bound, alternatives, assumptions and provenance."""

    schema_version: Literal[2] = 2
    problem: Problem
    backend: str = Field(description="the software that runs this plan, under whose physics it was predicted")
    release: str = Field(description="its release; empty = the default one")
    backends: tuple[BackEndAnswer, ...] = Field(
        default=(), description="every back-end that was asked, the fastest first; empty where one was asked"
    )
    unrestricted: UnrestrictedAnswer | None = None
    fastest: FastestPlan | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="beside the recommended plan; absent where the fastest plan was asked for, and it is this one",
    )
    status: PlanStatus
    strategy: dict[str, Any]
    stages: tuple[StagePlan, ...]
    step_time_s: float = Field(description="simulated; of plans of older versions a closed form")
    step_time_interval_s: tuple[float, float]
    tokens_per_s: float
    tokens_per_s_per_device: float
    model_flops_per_step: float
    model_flops_utilization: float
    peak_memory_bytes: int
    memory_limit_bytes: int = Field(description="peak that was allowed: constraints.fits, and a margin that was given")
    fits_probability: float | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="chance that the fullest device holds its predicted peak; absent in plans of earlier versions",
    )
    breakdown_s: dict[str, float]
    pipeline_hop_s: float = Field(default=0.0, ge=0, description="one transfer between neighbouring stages")
    lower_bound_s: float | None = Field(description="no plan of the searched spaces is faster; null: nobody searched")
    gap: float | None = Field(description="how much faster another plan could be, at most; null without a bound")
    search: SearchReport
    alternatives: tuple[Alternative, ...] = ()
    assumptions: tuple[str, ...] = ()
    origins: Origins | None = Field(default=None, description="of an estimate; a search chooses all that is not pinned")
    provenance: dict[str, Any] = Field(default_factory=dict)
    cost_per_step: float | None = None
    _older: Mapping[str, Any] | None = PrivateAttr(default=None)
    _stored_as: str | None = PrivateAttr(default=None)

    @model_validator(mode="wrap")
    @classmethod
    def _of_today(cls, data: Any, handler: ModelWrapValidatorHandler[Plan]) -> Plan:
        upgraded = plan_of_today(data)
        plan = handler(upgraded)
        if upgraded is not data:
            plan._older = data
        return plan

    @property
    def plan_id(self) -> str:
        """SHA-256 of the canonical JSON; of the JSON that was read, for a plan of an earlier version.

        So a plan keeps the id that it is stored, labelled and emitted under.
        """
        if self._stored_as is not None:
            return self._stored_as
        return self.content_hash() if self._older is None else _hash(self._older)

    @property
    def is_upgraded(self) -> bool:
        """Whether it was read from a document of an earlier form."""
        return self._older is not None

    def stored_as(self, plan_id: str) -> Plan:
        """The same plan under the id of a store that upgraded it for us."""
        kept = self.model_copy()
        kept._stored_as = plan_id
        return kept

    def written(self) -> Mapping[str, Any]:
        """The JSON whose hash the id is: that which was read, for a plan of an earlier version."""
        return self.model_dump(mode="json") if self._older is None else self._older

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Plan:
        """A copy; a changed one is known by its own content."""
        copied = super().model_copy(update=update, deep=deep)
        if update:
            copied._older, copied._stored_as = None, None
        return copied

    @property
    def outcome(self) -> PlanOutcome:
        """``status``; *recommended* where another plan, beside it, is proved to be the fastest."""
        other = self.fastest
        if self.status == "optimal" or other is None or other.is_recommended or other.status != "optimal":
            return self.status
        return "recommended"

    @property
    def is_final(self) -> bool:
        """Whether a new search of the same question could not better it."""
        return self.outcome in FINAL

    @property
    def bound(self) -> Bound | None:
        """What the search proved; None of an estimate: a given strategy bounds nothing."""
        if self.lower_bound_s is None or self.gap is None:
            return None
        return Bound(self.lower_bound_s, self.gap)

    @property
    def is_searched(self) -> bool:
        """Whether it is the answer of a search, and not an estimate."""
        return self.bound is not None

    def chosen(self) -> Strategy:
        """The strategy as a working object."""
        return Strategy.from_dict(self.strategy)


def status_of(outcome: PlanOutcome) -> PlanStatus:
    """The status of a plan that has this outcome."""
    return "feasible" if outcome == "recommended" else outcome


def _hash(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_json(document).encode()).hexdigest()
