"""Small parts of a layer besides its token mixer and its MLP or experts: norms, scales, gates, narrow projections.

A part says what it is, what it reads and writes, and how tensor parallelism cuts it; that gives its parameters,
operators, FLOPs and kept activations.  Families of 2025 and 2026 differ in such parts more than in whole blocks.

Learned scalars, unless ``learned`` says otherwise, with ``i`` features in, ``o`` out and ``k`` tokens of kernel::

    projection    i * o (+ o with a bias)        2 i o FLOPs a token
    norm, scale   i                              point-wise
    gate          0                              point-wise, a product of two tensors
    convolution   i * k * channels (+ i)         2 i k channels FLOPs a token; ``channels`` of a group of inputs
    table         ``learned``                    a look-up of ``i`` features; rows are split as the vocabulary
    held          i * o (+ o with a bias)        none: no token runs through it, or one vector a sample (a time step;
                                                 a pass over that weight is below 1 % of a layer's time)

Kept for the backward pass: what it reads (a gate both factors), once.  Parts run again with the whole layer, or with
the MLP where they belong to it.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from planner.model.operator import Module, Operator, OperatorClass, Shard
from profiles.document import Document

PartKind = Literal["projection", "norm", "scale", "gate", "convolution", "table", "held"]
PartBlock = Literal["attention", "mlp"]
PartCut = Literal["none", "output", "input", "heads", "features"]

_SHARDS: dict[PartCut, Shard] = {
    "none": "replicated",
    "output": "column",
    "input": "row",
    "heads": "heads",
    "features": "features",
}
_CLASSES: dict[PartKind, OperatorClass] = {
    "projection": "matmul",
    "norm": "norm",
    "scale": "gate",
    "gate": "gate",
    "convolution": "convolution",
    "table": "embedding",
    "held": "embedding",
}
_PROJECTIONS = ("projection", "held")


class PartSpec(Document):
    """One part: ``in_features`` read, ``out_features`` written (as many where it is left out)."""

    name: str = Field(min_length=1, description="unique within the layer, and not the name of another operator")
    kind: PartKind
    block: PartBlock = "attention"
    in_features: int = Field(gt=0)
    out_features: int | None = Field(default=None, gt=0, exclude_if=lambda size: size is None)
    learned: int | None = Field(
        default=None,
        ge=0,
        exclude_if=lambda count: count is None,
        description="learned scalars, if not as the kind says",
    )
    bias: bool = Field(default=False, exclude_if=lambda on: not on)
    cut: PartCut = Field(default="none", exclude_if=lambda cut: cut == "none", description="how tp splits it")
    kernel: int = Field(default=1, gt=0, exclude_if=lambda size: size == 1, description="tokens of a convolution")
    channels: int = Field(
        default=1, gt=0, exclude_if=lambda count: count == 1, description="input channels of one output channel"
    )
    rows: float = Field(default=1.0, gt=0, exclude_if=lambda rows: rows == 1.0, description="rows a token of the layer")
    of_source: bool = Field(
        default=False, exclude_if=lambda on: not on, description="runs over the second sequence, such as the text"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.kind not in _PROJECTIONS and self.out_features is not None:
            raise ValueError("only a projection writes another width than it reads")
        if self.kind == "gate" and self.parameters:
            raise ValueError("a gate has no learned scalars; its projection is a part of its own")
        return self

    @property
    def parameters(self) -> int:
        """Learned scalars."""
        if self.learned is not None:
            return self.learned
        written = self.out_features or self.in_features
        if self.kind in _PROJECTIONS:
            return self.in_features * written + (written if self.bias else 0)
        if self.kind == "convolution":
            return self.in_features * (self.kernel * self.channels + (1 if self.bias else 0))
        return 0 if self.kind in ("gate", "table") else self.in_features * (2 if self.bias else 1)


def part_operator(part: PartSpec, module: Module, *, prefix: str = "") -> Operator:
    """The operator of one part."""
    if part.kind == "held":
        return _held_operator(part, module, f"{prefix}{part.name}")
    written = part.out_features or part.in_features
    is_matmul = part.kind == "projection"
    convolution = part.kind == "convolution"
    read = (2 if part.kind == "gate" else 1) * part.in_features
    whole = part.kind != "table" and (part.cut == "none" or part.kind in ("norm", "scale"))
    saved: Shard = "heads" if part.cut in ("input", "heads") else "features" if part.cut == "features" else "sequence"
    return Operator(
        name=f"{prefix}{part.name}",
        op_class=_CLASSES[part.kind],
        module=module,
        shard=_shard(part),
        parameters=part.parameters,
        replicated_parameters=part.parameters if whole else 0,
        in_features=part.in_features if is_matmul else 0,
        out_features=written if is_matmul else 0,
        tokens_per_token=part.rows,
        read_width=round(read * part.rows),
        write_width=round(written * part.rows),
        flops=2.0 * part.in_features * part.kernel * part.channels * part.rows if convolution else 0.0,
        saved_width=0 if part.kind == "table" else read * part.rows,
        saved_shard=None if part.kind == "table" else saved,
        of_source=part.of_source,
    )


def _held_operator(part: PartSpec, module: Module, name: str) -> Operator:
    """Weights that have gradients and optimizer states as all others, and cost no time in a layer."""
    return Operator(
        name=name,
        op_class=_CLASSES["held"],
        module=module,
        shard=_SHARDS[part.cut],
        parameters=part.parameters,
        replicated_parameters=part.parameters if part.cut == "none" else 0,
    )


def _shard(part: PartSpec) -> Shard:
    if part.kind == "table":
        return "vocabulary"
    return "sequence" if part.cut == "none" and part.kind != "projection" else _SHARDS[part.cut]


def block_parts(parts: tuple[PartSpec, ...], block: PartBlock, module: Module) -> tuple[Operator, ...]:
    """The operators of the parts of one block of a layer."""
    return tuple(part_operator(part, module) for part in parts if part.block == block)
