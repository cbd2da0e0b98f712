"""A case, the unit of measurement: one operator, one phase, one dtype, one shape, one variant.

A case is plain data (no torch), so that it can be listed, counted, hashed and left out without a device.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from profiles.document import canonical_json
from profiles.observations.records import SHAPE_NAMES, LinkKind, Phase, Scalar


@dataclass(frozen=True, slots=True)
class WantedShape:
    """One operator at one shape, before dtypes and phases: what a grid or a model asks for.

    ``value``: 0 = measure first; a time budget cuts from the highest.  Sizes carry the names of an observation's
    shape.  matmul: y[m, n] = x[m, k] W[n, k].  grouped_matmul: ``m`` = mean rows of one of ``num_groups`` groups.
    """

    operator: str
    name: str
    sizes: dict[str, int]
    value: int = 0
    causal: bool | None = None
    detail: dict[str, Scalar] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raises ValueError for unknown size names and sizes below one."""
        for name, size in self.sizes.items():
            if name not in SHAPE_NAMES or size < 1:
                raise ValueError(f"{self.operator} {self.name}: {name} = {size} is not a size")


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to time.  ``memory_bytes``: all tensors that it holds; ``link``: what a copy goes over."""

    operator: str
    name: str
    phase: Phase
    dtype: str
    shape: dict[str, int]
    memory_bytes: int
    value: int = 0
    causal: bool | None = None
    detail: dict[str, Scalar] = field(default_factory=dict)
    graph: bool = True
    """Whether the call may be captured in a graph: no host synchronisation, no host memory."""
    link: LinkKind | None = None

    def identity(self) -> dict[str, Any]:
        """What makes two cases the same measurement."""
        return {
            "operator": self.operator,
            "name": self.name,
            "phase": self.phase,
            "dtype": self.dtype,
            "shape": self.shape,
            "causal": self.causal,
            "detail": self.detail,
            "link": self.link,
        }

    def words(self) -> str:
        """One line for a person: ``matmul forward bf16 m=4096 n=4096 k=4096``."""
        sizes = " ".join(f"{name}={size}" for name, size in self.shape.items())
        return " ".join(part for part in (self.operator, self.phase, self.dtype, sizes) if part)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A case with its tensors on the device: ``call`` runs it once, ``detail`` says how it is implemented."""

    call: Callable[[], object]
    detail: dict[str, Scalar] = field(default_factory=dict)


def key_of(identity: dict[str, Any], environment: str) -> str:
    """SHA-256 of a case in one environment: what a journal and a resumed run know it by."""
    return hashlib.sha256(canonical_json({"case": identity, "environment": environment}).encode()).hexdigest()
