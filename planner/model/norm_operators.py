"""The operators for the hidden-wide norms and residual sums of a layer."""

from __future__ import annotations

from planner.model.mixers.kinds import NormKind
from planner.model.operator import Operator

_VECTORS_PER_NORM: dict[str, int] = {"rms": 1, "layer": 2, "layer_no_bias": 1, "none_affine": 0}


def norm_parameters(width: int, norm: NormKind) -> int:
    """Learned scalars of one norm over ``width`` features: weight, and bias where the kind has one."""
    return width * _VECTORS_PER_NORM[norm]


def norm_operator(
    name: str, width: int, norm: NormKind, *, saved_from: str, shares_input: bool = False, of_source: bool = False
) -> Operator:
    """One hidden-wide norm; it keeps its input, unless another operator keeps the same tensor already."""
    parameters = norm_parameters(width, norm)
    return Operator(
        name=name,
        op_class="norm",
        module="norm",
        shard="sequence",
        parameters=parameters,
        replicated_parameters=parameters,
        read_width=width,
        write_width=width,
        saved_width=0 if shares_input else width,
        saved_shard=None if shares_input else "sequence",
        saved_from="" if shares_input else saved_from,
        of_source=of_source,
    )


def residual_operator(name: str, width: int, num_terms: int = 2) -> Operator:
    """Sum of ``num_terms`` hidden-wide tensors; keeps nothing."""
    return Operator(
        name=name,
        op_class="residual",
        module="residual",
        shard="sequence",
        read_width=num_terms * width,
        write_width=width,
    )
