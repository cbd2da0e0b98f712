"""The placement of every traced operator and its cost: the answer of ``meshwright shard``.

A placement is written per mesh axis, outermost axis first: ``replicate``, ``shard:DIM`` (even, DIM counts from 0) or
``partial:sum|avg|max|min`` (every rank of the axis holds a term).  Two axes that shard one dim nest in mesh order:
``("shard:0", "shard:0")`` on 2x8 cuts dim 0 in two, and each half in eight.

Names are those of the graph that ``planner.shard.torch_graph.trace`` gives for ``traced``: tracing again gives the
same names, so a plan is executed by walking that graph, bringing every input of an operator from ``held`` to
``needed``, and running the operator on the local shards.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from pydantic import Field

from profiles.document import Document

Placement = str
Placements = tuple[Placement, ...]
"""One word an axis of the mesh."""

ShardingStatus = Literal["optimal", "feasible"]


class MeshAxis(Document):
    """One axis of the mesh; ranks are numbered row-major, so the last axis holds neighbours."""

    name: str
    size: int = Field(gt=0)
    stride: int = Field(gt=0, description="distance in ranks between neighbours along the axis")


class TracedInput(Document):
    """An example input: what the module is called with, by position."""

    name: str
    dtype: str = Field(description="torch name without prefix: bfloat16, int64, ..")
    shape: tuple[int, ...]
    gradient: bool = Field(default=False, description="whether the step computes its gradient")


class TracedModule(Document):
    """What was traced: enough to trace it again."""

    module: str = Field(description="pkg:Class")
    arguments: dict[str, Any] = Field(
        default_factory=dict, description="constructor arguments; of a transformers model, its whole config"
    )
    inputs: tuple[TracedInput, ...]
    dtype: str = Field(default="bfloat16", description="of parameters and floating inputs")
    graph_hash: str = Field(description="SHA-256 of the traced graph: names, targets, edges and shapes")

    @property
    def title(self) -> str:
        """What people call it: the class, or the kind of a transformers model."""
        config = self.arguments.get("config")
        kind = config.get("model_type") if isinstance(config, dict) else None
        return self.module if kind is None else f"transformers {kind}"


class TensorEdge(Document):
    """One tensor that an operator reads."""

    producer: str = Field(description="node name in the graph (a getitem counts as the output that it takes)")
    held: Placements = Field(description="as the producer left it")
    needed: Placements = Field(description="as this operator reads it")
    resharding_s: float = Field(ge=0)
    collectives: tuple[str, ...] = Field(default=(), description='such as "all_gather(tp)", in order')


class OperatorPlacement(Document):
    """One operator of the graph: placements in and out, time and memory of a device."""

    name: str
    target: str = Field(description='ATen overload, such as "aten.mm.default"')
    module_path: str = Field(description='qualified name inside the module; "" = the module itself')
    phase: Literal["forward", "backward"]
    inputs: tuple[TensorEdge, ...] = Field(description="tensor arguments in the order of the flattened call")
    outputs: tuple[Placements | None, ...] = Field(description="one per output; None where an output is no tensor")
    compute_s: float = Field(ge=0)
    memory_bytes: int = Field(ge=0, description="of its outputs on one device; 0 for views of other tensors")
    live_from: int = Field(description="step of the graph that makes the outputs")
    live_until: int = Field(description="first step that no longer needs them")
    rule: Literal["dtensor", "replicated"] = Field(
        description="replicated: PyTorch has no sharding rule for the operator, so every rank runs it whole"
    )
    num_options: int = Field(gt=0)


class ParameterPlacement(Document):
    """A parameter or buffer: where it lives, and where its gradient and optimizer states live."""

    name: str = Field(description="placeholder in the graph")
    parameter: str = Field(description="qualified name inside the module")
    kind: Literal["parameter", "buffer"]
    shape: tuple[int, ...]
    dtype: str
    placements: Placements
    state_placements: Placements = Field(
        description="of gradient, master copy and optimizer states; the update is gathered back where they differ"
    )
    gradient_producer: str | None = Field(default=None, description="node whose output is the gradient")
    gradient_resharding_s: float = Field(default=0.0, ge=0)
    gradient_collectives: tuple[str, ...] = Field(default=(), description="that bring the gradient to its state")
    update_resharding_s: float = Field(default=0.0, ge=0)
    update_collectives: tuple[str, ...] = Field(default=(), description="that bring the new value to where it is read")
    memory_bytes: int = Field(ge=0, description="on one device")
    state_bytes: int = Field(default=0, ge=0, description="gradient, master copy and optimizer states on one device")


class InputPlacement(Document):
    """A batch input as each rank gets it."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    placements: Placements
    memory_bytes: int = Field(ge=0)


class OutputPlacement(Document):
    """A result of the graph that is no parameter's gradient: the loss, gradients of inputs, changed buffers."""

    name: str = Field(description="what it is: loss, gradient:x, buffer:bn.running_mean, ..")
    producer: str
    held: Placements
    placements: Placements = Field(description="as it is handed out")
    resharding_s: float = Field(default=0.0, ge=0)
    collectives: tuple[str, ...] = ()


class ShardingCosts(Document):
    """Seconds of one step on one device and its memory, by term."""

    total_s: float
    compute_s: float
    resharding_s: float
    forward_s: float = Field(description="operators of the forward pass with the resharding of what they read")
    backward_s: float = Field(description="the same of the backward pass, gradients into their states included")
    optimizer_s: float = Field(description="updates, and updated parameters gathered back")
    peak_memory_bytes: int
    parameters_bytes: int
    states_bytes: int
    activations_bytes: int = Field(description="at the peak")
    capacity_bytes: int | None


class RepeatedBlocks(Document):
    """Copies of one subgraph that were given one choice."""

    paths: tuple[str, ...]
    num_operators: int


class ShardingPlan(Document):
    """The chosen placements of one training step of a module on one mesh, proved as far as the solver came."""

    schema_version: Literal[1] = 1
    traced: TracedModule
    cluster: str
    mesh: tuple[MeshAxis, ...]
    optimizer: str
    status: ShardingStatus
    bound_s: float = Field(description="no placement of this mesh takes less, under this cost model")
    gap: float = Field(ge=0, description="(cost - bound) / cost")
    costs: ShardingCosts
    parameters: tuple[ParameterPlacement, ...]
    inputs: tuple[InputPlacement, ...]
    operators: tuple[OperatorPlacement, ...] = Field(description="in the order of the graph")
    outputs: tuple[OutputPlacement, ...]
    repeated: tuple[RepeatedBlocks, ...] = ()
    provenance: dict[str, int] = Field(default_factory=dict, description="operators by where their time comes from")
    assumptions: tuple[str, ...] = ()

    @property
    def num_devices(self) -> int:
        """Devices of the mesh, one rank each."""
        return math.prod(axis.size for axis in self.mesh)

    @property
    def plan_id(self) -> str:
        """SHA-256 of the canonical JSON."""
        return self.content_hash()
