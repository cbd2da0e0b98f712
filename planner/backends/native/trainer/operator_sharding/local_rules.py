"""Operators that run on the shards directly, because DTensor's dispatch does less than its own sharding rule.

A contraction (``einsum``) would be taken apart into views and a batched product, and a view cannot keep every sharding
that the contraction can.  By its letters: an axis that cuts one letter cuts it in every operand that has it; the result
is cut likewise, or a term of a sum where the letter is contracted.  It is linear, so that terms of one operand give
terms of the result.

In torch 2.13 the handlers of the convolutions take one sharded axis only (``tensor/_tp_conv.py``, ``dim_map``), and
``native_group_norm_backward`` is given the sizes of the whole tensor (``tensor/_ops/_math_ops.py`` adjusts those of the
forward alone).  Samples, and the groups of a group norm, are independent, so that each rank runs the plain operator on
its own.  The attention kernels of CPUs have no rule at all (DTensor tries every combination of placements on their
decomposition, which takes minutes for the seven tensors of the backward pass); samples and heads are independent there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

aten = torch.ops.aten

Arguments = tuple[Any, ...]


class AxisRule(NamedTuple):
    """What one mesh axis may do: words of the tensor arguments in order, and of the results."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class LocalRule(NamedTuple):
    """How the local call differs from the traced one, and for which placements it is right."""

    axis_rules: tuple[AxisRule, ...]
    adjusted: Callable[[Arguments], Arguments]
    """Local arguments -> the same with sizes made local."""


def _unchanged(arguments: Arguments) -> Arguments:
    return arguments


def _independent(dim: int, tensors: int, outputs: int) -> AxisRule:
    """Every tensor is cut in one dim."""
    return AxisRule((f"shard:{dim}",) * tensors, (f"shard:{dim}",) * outputs)


def _attention(dim: int, tensors: int, outputs: int) -> tuple[AxisRule, AxisRule]:
    """Samples (dim 0) or heads (dim 1) are cut; a mask, the last input where there is one, is cut or is for all."""
    cut = _independent(dim, tensors, outputs)
    return (
        AxisRule((*cut.inputs, f"shard:{dim}"), cut.outputs),
        AxisRule((*cut.inputs, "replicate"), cut.outputs),
    )


def _group_norm_sizes(arguments: Arguments) -> Arguments:
    """(grad, input, mean, rstd, weight, N, C, HxW, group, mask): local samples, channels and groups."""
    samples, channels = arguments[0].shape[:2]
    group = arguments[8] * channels // arguments[6]
    return (*arguments[:5], samples, channels, arguments[7], group, *arguments[9:])


LOCAL_RULES: Mapping[Any, LocalRule] = {
    aten.convolution.default: LocalRule((AxisRule(("shard:0", "replicate", "replicate"), ("shard:0",)),), _unchanged),
    aten.convolution_backward.default: LocalRule(
        (AxisRule(("shard:0", "shard:0", "replicate"), ("shard:0", "partial:sum", "partial:sum")),), _unchanged
    ),
    aten.native_group_norm_backward.default: LocalRule(
        (
            AxisRule(("shard:0",) * 4 + ("replicate",), ("shard:0", "partial:sum", "partial:sum")),
            AxisRule(("shard:1",) * 4 + ("shard:0",), ("shard:1", "shard:0", "shard:0")),
        ),
        _group_norm_sizes,
    ),
    # [batch, heads, sequence, head_dim] and a log-sum-exp of [batch, heads, sequence]
    aten._scaled_dot_product_flash_attention_for_cpu.default: LocalRule(
        (*_attention(0, 3, 2), *_attention(1, 3, 2)), _unchanged
    ),
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: LocalRule(
        (*_attention(0, 6, 3), *_attention(1, 6, 3)), _unchanged
    ),
}


def local_outputs(
    target: Any, arguments: Arguments, inputs: Sequence[Sequence[str]]
) -> tuple[tuple[str, ...], ...] | None:
    """The placements that the operator gives on the shards of ``inputs``; None where it may not run on them."""
    if target is aten.einsum.default:
        rules = contraction_rules(arguments[0])
    elif target in LOCAL_RULES:
        rules = LOCAL_RULES[target].axis_rules
    else:
        return None
    axes = []
    for words in zip(*inputs, strict=True):
        # Optional parameters are the last arguments, so that their absence shortens the row.
        fitting = [rule for rule in _with_idle(rules) if rule.inputs[: len(words)] == words]
        if not fitting:
            return None
        axes.append(fitting[0].outputs)
    return tuple(zip(*axes, strict=True))


def contraction_rules(equation: str) -> tuple[AxisRule, ...]:
    """What one mesh axis may do to ``bsk,nk->bsn``: cut a letter, or hold terms of one operand."""
    operands, _, result = equation.replace(" ", "").partition("->")
    parts = operands.split(",")
    cuts = [
        AxisRule(
            tuple(f"shard:{part.index(letter)}" if letter in part else "replicate" for part in parts),
            (f"shard:{result.index(letter)}" if letter in result else "partial:sum",),
        )
        for letter in sorted(set(operands) - {","})
    ]
    terms = [
        AxisRule(
            tuple("partial:sum" if other == index else "replicate" for other in range(len(parts))), ("partial:sum",)
        )
        for index in range(len(parts))
    ]
    return (*cuts, *terms)


def _with_idle(rules: Sequence[AxisRule]) -> tuple[AxisRule, ...]:
    """The rules, and the one that an axis may always follow: nothing is cut."""
    idle = AxisRule(("replicate",) * len(rules[0].inputs), ("replicate",) * len(rules[0].outputs))
    return (idle, *rules)
