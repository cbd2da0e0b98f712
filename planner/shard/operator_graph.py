"""The traced graph of the step as plain data: operators, the tensors between them, and their rules.

Nothing here knows torch: ``planner.shard.torch_graph`` fills it.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Kind = Literal["parameter", "buffer", "input", "operator"]
WorkKind = Literal["contraction", "attention", "convolution", "moves", "view", "none"]
Phase = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True)
class TensorShape:
    """Sizes and width of one tensor, whole."""

    sizes: tuple[int, ...]
    element_bytes: int
    dtype: str

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole tensor."""
        return math.prod(self.sizes) * self.element_bytes


@dataclass(frozen=True, slots=True)
class TensorRead:
    """One tensor argument: output ``output`` of node ``producer``; ``name`` is its node in the traced graph."""

    producer: int
    output: int
    name: str


@dataclass(frozen=True, slots=True)
class AxisRule:
    """One way to run an operator over one mesh axis: a code per tensor argument and per output."""

    inputs: tuple[int, ...]
    outputs: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """What an operator costs, given the shapes that one device holds.

    contraction   ``equation`` over its two inputs
    attention     inputs query, key, value first (``grad_output`` before them in the backward pass); ``causal``
    convolution   ``groups``; ``passes``: products of the forward pass's size (2 for both gradients)
    moves         reads its inputs and writes its outputs once
    view, none    nothing
    """

    kind: WorkKind
    equation: str = ""
    causal: bool = False
    groups: int = 1
    passes: int = 1


@dataclass(frozen=True, slots=True)
class OperatorNode:
    """A node of the step; ``rules`` holds the rules of one axis for every prime divisor of an axis that matters."""

    name: str
    kind: Kind
    target: str
    module_path: str
    phase: Phase
    reads: tuple[TensorRead, ...]
    input_shapes: tuple[TensorShape, ...]
    output_shapes: tuple[TensorShape | None, ...]
    work: Work
    rules: dict[int, tuple[AxisRule, ...]]
    has_rule: bool
    signature: str
    """Equal for operators that do the same on tensors of the same shapes."""

    @property
    def is_view(self) -> bool:
        """Whether the outputs share the memory of the first input."""
        return self.work.kind == "view"


@dataclass(frozen=True, slots=True)
class StepResult:
    """A result: ``loss``, ``parameter:NAME`` or ``input:NAME`` (gradients), ``buffer:NAME`` (new value)."""

    name: str
    read: TensorRead


@dataclass(frozen=True)
class OperatorGraph:
    """The step in topological order; placeholders first."""

    nodes: tuple[OperatorNode, ...]
    results: tuple[StepResult, ...]
    names: dict[int, str]
    """Qualified names of parameters, buffers and inputs, by node."""

    @cached_property
    def graph_hash(self) -> str:
        """SHA-256 of names, targets, edges and shapes."""
        rows = [
            [node.name, node.target, [[read.producer, read.output] for read in node.reads], node.signature]
            for node in self.nodes
        ]
        return hashlib.sha256(json.dumps(rows).encode()).hexdigest()

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """Nodes that read each node, in order."""
        found: list[list[int]] = [[] for _ in self.nodes]
        for index, node in enumerate(self.nodes):
            for read in node.reads:
                found[read.producer].append(index)
        return tuple(tuple(each) for each in found)

    @cached_property
    def last_use(self) -> tuple[int, ...]:
        """The last step that needs each node's memory, through views of it; results stay to the end of their step."""
        last = list(range(len(self.nodes)))
        for index in reversed(range(len(self.nodes))):
            for reader in self.readers[index]:
                reaches = last[reader] if self.nodes[reader].is_view else reader
                last[index] = max(last[index], reaches)
        return tuple(last)

    @cached_property
    def gradients(self) -> dict[str, TensorRead]:
        """The node that makes each parameter's gradient, by qualified name."""
        prefix = "parameter:"
        return {each.name.removeprefix(prefix): each.read for each in self.results if each.name.startswith(prefix)}
