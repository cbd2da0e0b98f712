"""A kind of operator for the measuring: its cases for a wanted shape, and how one is prepared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from profiles.measure.case import Case, Prepared, WantedShape
from profiles.measure.device import MeasuredDevice

DTYPE_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1}


@dataclass(frozen=True, slots=True)
class OperatorKind:
    """One kind of operator.

    ``cases``: all phases and variants of a shape in one dtype; ``dtypes``: the only ones that it is measured in, empty
    = every wanted one.  ``prepare`` makes the tensors of a case; what it raises becomes the error of the case.
    """

    cases: Callable[[WantedShape, str], list[Case]]
    prepare: Callable[[Case, MeasuredDevice], Prepared]
    dtypes: tuple[str, ...] = ()
