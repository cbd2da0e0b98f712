"""What one forward pass ran, operation by operation, in plain numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

RecordKind = Literal["matmul", "attention", "convolution", "lookup", "pointwise"]
ACTIVATIONS = frozenset(
    ("silu", "gelu", "relu", "sigmoid", "tanh", "softplus", "hardtanh", "hardsigmoid", "hardswish", "elu", "leaky_relu")
)
"""Operations of torch (``aten``) that make a group of point-wise ones an activation."""


@dataclass(slots=True)
class Record:
    """One operation.  Tensors are numbered by the memory that they share; parameters are not among the inputs.

    A product multiplies [rows, depth] with [depth, columns], ``rows`` over all products of a batch.
    """

    kind: RecordKind
    operation: str
    path: str
    norm: str = ""
    """Path of the norm module that it belongs to..."""
    inputs: dict[int, int] = field(default_factory=dict)
    """Tensor -> elements read of it."""
    output: int = -1
    written: int = 0
    parameters: list[int] = field(default_factory=list)
    """Parameters that it reads, by tensor."""
    rows: int = 0
    depth: int = 0
    columns: int = 0
    experts: int = 0
    """Leading size of a weight of which each row meets one part."""
    heads: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Attention: query heads, key-value heads, query width, value width."""
    window: int | None = None
    causal: bool = True
    flops: int = 0
    saves: dict[int, int] = field(default_factory=dict)
    """Tensor -> elements of its memory, where this is the first operation that keeps it for the backward pass."""


@dataclass(slots=True)
class Trace:
    """One forward pass over ``length`` tokens."""

    length: int
    records: list[Record]
    parameter_sizes: dict[int, int]
    """Elements of every parameter that the pass met, by tensor."""
