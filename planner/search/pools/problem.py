"""The question for several pools of unequal devices: model, pools, workload, constraints; one hashed document."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from planner.backends.asked import the_software, why_not_these_devices
from planner.backends.registry import with_files
from planner.errors import BackEndRefused, DocumentInvalid
from planner.model.spec import ModelSpec
from planner.question.agreement import contradictions
from planner.question.complete import complete_problem, require_agreement
from planner.question.problem import ANY, UNRESTRICTED, Constraints, Problem, Workload
from planner.search.choices import checked_pins
from planner.strategy.fields import OF_RELIEF
from profiles.cluster import Cluster
from profiles.device import Device
from profiles.document import Document

FIXED: dict[str, int | str] = {"vpp": 1, "schedule": "1f1b", "axis_order": "tp-cp-ep-dp-pp", "microbatch_group_size": 0}
"""What plans over several pools do not choose; a pin may only repeat it."""
_FLAGS = {"/model": "--model", "/workload/sequences": "--sequences"}
"""What the question calls a part of it -> its flag."""
DEFAULTS: dict[str, int] = {"cp": 1, "dp_replicate": 1}
"""What they leave at one unless a pin says otherwise."""


def complete_pools_problem(
    model: ModelSpec, clusters: tuple[Cluster, ...], workload: Workload, constraints: Constraints
) -> PoolsProblem:
    """The checked question.

    A back-end that is named runs the stages of a pool one after the other, and waits for a gradient norm over all
    stages before its optimizers start, so that no late work hides.

    Raises DocumentInvalid, FindingsInvalid, NotFound; BackEndRefused for a back-end that runs on equal devices alone.
    """
    require_agreement(model, workload)
    for name in ("max_step_time_s", "min_tokens_per_s"):
        if getattr(constraints, name) is not None:
            raise DocumentInvalid(
                "plans over several pools are searched for their step time alone",
                where=f"/constraints/{name}",
                hint="leave it out and compare the plan's step time",
            )
    try:
        problem = PoolsProblem(model=model, clusters=clusters, workload=workload, constraints=constraints)
    except ValidationError as error:
        said = str(error.errors()[0]["msg"]).removeprefix("Value error, ")
        pointer, _, reason = said.partition(": ")
        flag = _FLAGS.get(pointer)
        raise DocumentInvalid(
            reason if flag else said, where=flag or "--pool", hint="plan each pool by itself"
        ) from error
    problem.pins()
    for cluster in clusters:
        _demand_precision(cluster.pools[0].device, workload.precision)
    if not problem.alike:
        return problem
    _demand_together(problem, clusters)
    return problem.model_copy(update={"consecutive": True, "hides_late_work": False})


def _demand_precision(device: Device, precision: str) -> None:
    if precision not in device.peak_flops_per_s:
        known = ", ".join(sorted(device.peak_flops_per_s))
        raise DocumentInvalid(
            f"{device.name} has no {precision} rate; it knows {known}",
            where="--precision",
            hint="choose a precision that every pool has, for example --precision fp16",
        )


def _demand_together(problem: PoolsProblem, clusters: tuple[Cluster, ...]) -> None:
    """The one back-end runs on unequal devices, on these makers', and on one maker's at a time."""
    software = the_software(problem.of_pool(0, problem.workload.global_batch_size))
    if not software.backend.unequal_devices:
        able = ", ".join(each.name for each in with_files() if each.unequal_devices)
        raise BackEndRefused(
            f"nobody has shown {software.title} to run one pipeline over unequal devices: its launch files would be a"
            " guess",
            where="--backend",
            hint=f"name {able}, leave --backend out for a plan for study, or plan each pool by itself",
        )
    devices = [cluster.pools[0].device for cluster in clusters]
    for index in range(len(clusters)):
        reason = why_not_these_devices(software, problem.of_pool(index, problem.workload.global_batch_size))
        if reason is not None:
            raise BackEndRefused(f"{software.name} {reason}", where="--pool", hint="leave that pool out")
    makers = sorted({device.vendor for device in devices})
    if len(makers) > 1:
        raise BackEndRefused(
            f"devices of {' and '.join(makers)} have no communication library in common",
            where="--pool",
            hint="name pools of one maker's devices, or leave --backend out for a plan for study",
        )


class PoolsProblem(Document):
    """A pipeline over several pools: each stage on devices of one pool, with a sub-mesh and a policy of its own."""

    schema_version: Literal[1] = 1
    model: ModelSpec
    clusters: tuple[Cluster, ...] = Field(min_length=1, description="one pool each, with the fabric of that pool")
    workload: Workload
    constraints: Constraints = Field(default_factory=Constraints)
    consecutive: bool = Field(default=False, description="whether the stages of a pool must follow each other")
    hides_late_work: bool = Field(
        default=True, description="whether once-a-step work of a stage hides under the drain of the stages before it"
    )

    @field_validator("clusters")
    @classmethod
    def _one_pool_each(cls, clusters: tuple[Cluster, ...]) -> tuple[Cluster, ...]:
        for cluster in clusters:
            if len(cluster.pools) != 1:
                raise ValueError(f"cluster {cluster.name} has {len(cluster.pools)} pools; each entry holds exactly one")
        return clusters

    @model_validator(mode="after")
    def _whole_sequences(self) -> PoolsProblem:
        """Stages on unequal devices are timed with whole sequences."""
        if self.workload.sequences is not None and self.workload.sequences.kind == "packed":
            raise ValueError("/workload/sequences: plans over unequal pools do not model packed documents; use padded")
        return self

    @model_validator(mode="after")
    def _agrees(self) -> PoolsProblem:
        """The workload is one of this model, whose layers may be cut into stages."""
        found = contradictions(self.model, self.workload)
        if found:
            raise ValueError("; ".join(f"{pointer}: {message}" for pointer, message in found))
        several = self.model.encoder is not None or self.model.denoiser is not None
        if several or self.model.crossed_modality is not None:
            raise ValueError("/model: layers that attend to an encoder, a tower or text states are not cut into stages")
        return self

    @model_validator(mode="after")
    def _has_layers(self) -> PoolsProblem:
        if self.model.num_layers < 1:
            raise ValueError("the model has no layers")
        return self

    @property
    def problem_id(self) -> str:
        """SHA-256 of the canonical JSON."""
        return self.content_hash()

    @property
    def num_devices(self) -> int:
        """Devices in all pools."""
        return sum(cluster.num_devices for cluster in self.clusters)

    def pool_names(self) -> tuple[str, ...]:
        """Names of the pools, numbered where two are the same."""
        names = [cluster.name for cluster in self.clusters]
        return tuple(
            name if names.count(name) == 1 else f"{name}-{names[: index + 1].count(name)}"
            for index, name in enumerate(names)
        )

    def pins(self) -> dict[str, int | str | bool]:
        """Pins and forbids as one table.  Raises DocumentInvalid for those that such plans cannot keep."""
        pins = checked_pins(self.constraints)
        wrong = [f"{name}={pins[name]}" for name, value in FIXED.items() if pins.get(name, value) != value]
        if wrong:
            raise DocumentInvalid(
                f"plans over several pools run 1f1b with one chunk a stage; they cannot keep {', '.join(wrong)}",
                where="--pin",
                hint="drop the pin, or plan each pool by itself",
            )
        return pins

    @property
    def alike(self) -> bool:
        """Whether a back-end is named: its stages have the same degrees, micro-batch and kind of relief."""
        return self.constraints.backends not in {(ANY,), (UNRESTRICTED,)}

    def of_pool(self, index: int, microbatch_samples: int) -> Problem:
        """The question that one stage of one pool asks: ``microbatch_samples`` at once, no pipeline.

        Of a back-end: the stage and another one like it, in a pipeline with all micro-batches, as its rules see them.
        """
        pins = {**DEFAULTS, **{name: value for name, value in self.pins().items() if name not in ("pp", *FIXED)}}
        pins |= {"pp": 1, "num_microbatches": 1}
        workload = self.workload
        if self.alike:
            pins |= {**FIXED, "pp": 2, "num_microbatches": workload.global_batch_size // microbatch_samples}
        else:
            workload = workload.model_copy(update={"global_batch_size": microbatch_samples})
        # In the words that say which layers relieve memory.
        pins |= {name: word for name, word in self.constraints.pins.items() if name in OF_RELIEF}
        backends = self.constraints.backends if self.alike else (UNRESTRICTED,)
        constraints = self.constraints.model_copy(update={"pins": pins, "forbids": (), "backends": backends})
        return complete_problem(self.model, self.clusters[index], workload, constraints)
