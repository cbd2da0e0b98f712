"""The question for several pools of unequal devices: model, pools, workload, constraints; one hashed document."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator, model_validator

from planner.errors import DocumentInvalid
from planner.model.spec import ModelSpec
from planner.question.agreement import contradictions
from planner.question.complete import complete_problem
from planner.question.problem import ANY, UNRESTRICTED, Constraints, Problem, Workload
from planner.search.choices import checked_pins
from planner.strategy.fields import OF_RELIEF
from profiles.cluster import Cluster
from profiles.document import Document

FIXED: dict[str, int | str] = {"vpp": 1, "schedule": "1f1b", "axis_order": "tp-cp-ep-dp-pp", "microbatch_group_size": 0}
"""What plans over several pools do not choose; a pin may only repeat it."""
DEFAULTS: dict[str, int] = {"cp": 1, "dp_replicate": 1}
"""What they leave at one unless a pin says otherwise."""


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

    def of_pool(self, index: int, microbatch_samples: int) -> Problem:
        """The question that one stage of one pool asks: ``microbatch_samples`` at once, no pipeline."""
        pins = {**DEFAULTS, **{name: value for name, value in self.pins().items() if name not in ("pp", *FIXED)}}
        pins |= {"pp": 1, "num_microbatches": 1}
        # In the words that say which layers relieve memory.
        pins |= {name: word for name, word in self.constraints.pins.items() if name in OF_RELIEF}
        # No back-end has launch files for several pools yet, so by default none restricts the stages.
        named = self.constraints.backends
        backends = (UNRESTRICTED,) if named == (ANY,) else named
        constraints = self.constraints.model_copy(update={"pins": pins, "forbids": (), "backends": backends})
        workload = self.workload.model_copy(update={"global_batch_size": microbatch_samples})
        return complete_problem(self.model, self.clusters[index], workload, constraints)
