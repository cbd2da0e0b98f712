"""The ways to run one operator over one axis of a mesh, asked of PyTorch's own DTensor sharding rules.

Every rule that PyTorch registers says, for a mesh of one axis, which placements of the inputs give which placements of
the outputs with nothing but local work.  On more axes they combine freely (``planner.shard.options``).  The rules are
asked on a device mesh that no process group stands behind.

Left out: uneven and strided shards, masked partial sums (an embedding sharded over its vocabulary), and partial
averages, maxima and minima as *inputs*: those are reduced before anything else reads them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor
from torch.distributed.tensor._dtensor_spec import DTensorSpec, TensorMeta
from torch.distributed.tensor._op_schema import OpSchema, OpSpec, OpStrategy, TupleStrategy
from torch.distributed.tensor._ops._einsum_strategy import gen_einsum_strategies
from torch.distributed.tensor._ops.single_dim_strategy import _ShardingPlaceholder
from torch.distributed.tensor.placement_types import Partial, Replicate, Shard
from torch.utils import _pytree as pytree

from planner.shard.operator_graph import AxisRule
from planner.shard.placement import PARTIAL_KINDS, REPLICATE, shard

aten = torch.ops.aten

FLASH_FORWARD = aten._scaled_dot_product_flash_attention_for_cpu.default
FLASH_BACKWARD = aten._scaled_dot_product_flash_attention_for_cpu_backward.default
MOST_CALLS = 64
"""Combinations of input placements that a rule is asked about before single ones have to do."""


def has_rule(operator: OpOverload) -> bool:
    """Whether the operator can be sharded at all."""
    known = DTensor._op_dispatcher.sharding_propagator
    return (
        operator in known.op_strategy_funcs
        or operator in known.op_single_dim_strategy_funcs
        or operator in (aten.einsum.default, FLASH_FORWARD, FLASH_BACKWARD)
    )


@dataclass(frozen=True)
class _Call:
    """One call of an operator: arguments with fake tensors, the tensors among them, and its outputs."""

    operator: OpOverload
    args: Sequence[Any]
    kwargs: dict[str, Any]
    tensors: list[Tensor]
    outputs: list[Tensor | None]
    size: int


def axis_rules(
    operator: OpOverload, args: Sequence[Any], kwargs: dict[str, Any], output: Any, size: int
) -> tuple[AxisRule, ...]:
    """Rules over one axis of ``size`` ranks; arguments hold fake tensors.  Running it whole everywhere is the first."""
    tensors = [each for each in pytree.tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
    outputs = [each if isinstance(each, Tensor) else None for each in _as_list(output)]
    whole = AxisRule((REPLICATE,) * len(tensors), tuple(None if each is None else REPLICATE for each in outputs))
    found = {whole: None}
    for asked in _asked(_Call(operator, args, kwargs, tensors, outputs, size)):
        made = zip(asked.outputs, outputs, strict=False)
        rule = AxisRule(asked.inputs, tuple(None if value is None else code for code, value in made))
        if _fits(rule, tensors, outputs):
            found[rule] = None
    return tuple(found)


def _asked(call: _Call) -> Iterator[AxisRule]:
    known = DTensor._op_dispatcher.sharding_propagator
    if call.operator is aten.einsum.default:
        strategy = gen_einsum_strategies(call.args[0], _mesh(call.size))
        yield from _of_strategy(strategy, len(call.tensors), call.outputs)
    elif call.operator in (FLASH_FORWARD, FLASH_BACKWARD):
        yield from _attention(call.tensors, call.outputs)
    elif call.operator in known.op_single_dim_strategy_funcs:
        info = known.op_single_dim_strategy_funcs[call.operator]
        meta_args, meta_kwargs = pytree.tree_map_only(Tensor, _meta, (tuple(call.args), dict(call.kwargs)))
        for row in info.func(call.operator, meta_args, meta_kwargs):
            codes = [_code(each) for each in row]
            split = len(codes) - len(call.tensors)
            # Uneven and foreign placements have no code; an output that is no tensor has no placement.
            if split >= 1 and None not in codes[split:]:
                yield AxisRule(tuple(_known(codes[split:])), tuple(codes[:split]))
    elif call.operator in known.op_strategy_funcs:
        for placements in _combinations(call.tensors):
            yield from _strategy_of(call, placements)


def _strategy_of(call: _Call, placements: Sequence[Any]) -> Iterator[AxisRule]:
    """What a whole-mesh rule says about one combination of input placements."""
    mesh, left = _mesh(call.size), iter(placements)

    def wrap(tensor: Tensor) -> OpStrategy:
        return OpStrategy([OpSpec(DTensorSpec(mesh, (next(left),), tensor_meta=_meta(tensor)))])

    known = DTensor._op_dispatcher.sharding_propagator
    wrapped = tuple(_wrapped(each, wrap) for each in call.args)
    wrapped_kwargs = {key: _wrapped(each, wrap) for key, each in call.kwargs.items()}
    info = known.op_to_schema_info.get(call.operator)
    schema = OpSchema(call.operator, wrapped, wrapped_kwargs, schema_info=info)
    try:
        strategy = known.op_strategy_funcs[call.operator](schema)
    # A rule refuses placements that it cannot handle by whatever exception its author chose.
    except Exception:
        return
    if isinstance(strategy, OpStrategy):
        yield from _of_strategy(strategy, len(call.tensors), call.outputs)


def _wrapped(value: Any, wrap: Callable[[Tensor], OpStrategy]) -> Any:
    if isinstance(value, Tensor):
        return wrap(value)
    if isinstance(value, (list, tuple)) and value and all(isinstance(each, Tensor) for each in value):
        return TupleStrategy(tuple(wrap(each) for each in value))
    if isinstance(value, (list, tuple)) and any(isinstance(each, Tensor) for each in value):
        return [_wrapped(each, wrap) for each in value]
    return value


def _of_strategy(strategy: OpStrategy, inputs: int, outputs: list[Tensor | None]) -> Iterator[AxisRule]:
    for spec in strategy.strategies:
        out = spec.output_specs
        made = [out] * len(outputs) if isinstance(out, DTensorSpec) else list(out or ())
        if len(made) < len(outputs):
            made += [None] * (len(outputs) - len(made))
        read = spec.input_specs if spec.input_specs is not None else [made[0]] * inputs
        codes_in = [_code(each.placements[0]) for each in read if each is not None][:inputs]
        codes_out = [
            None if value is None or each is None else _code(each.placements[0])
            for each, value in zip(made, outputs, strict=False)
        ]
        lost = any(value is not None and code is None for value, code in zip(outputs, codes_out, strict=False))
        if len(codes_in) == inputs and None not in codes_in and not lost:
            yield AxisRule(tuple(_known(codes_in)), tuple(codes_out))


def _attention(tensors: list[Tensor], outputs: list[Tensor | None]) -> Iterator[AxisRule]:
    """Batches and heads are independent: the rule that PyTorch has for its attention kernels of GPUs."""
    whole = next(each for each in tensors if each.dim() == 4).shape[:2]
    for dim, size in enumerate(whole):
        if size == 1:
            continue

        def code(tensor: Tensor | None, dim: int = dim, size: int = size) -> int | None:
            if tensor is None:
                return None
            # The log-sum-exp is [batch, sequence, heads] or [batch, heads, sequence]; masks may have dims of one.
            if tensor.dim() == 3 and dim == 1:
                return shard(1 if tensor.shape[1] == size else 2)
            return shard(dim) if tensor.dim() > dim and tensor.shape[dim] == size else REPLICATE

        inputs = [code(each) for each in tensors]
        yield AxisRule(tuple(_known(inputs)), tuple(code(each) for each in outputs))


def _combinations(tensors: list[Tensor]) -> Iterable[tuple[Any, ...]]:
    """Placements of all inputs to ask a rule about: every combination where there are few, else one input at a time."""
    choices = [[Replicate(), *(Shard(dim) for dim in range(each.dim())), Partial()] for each in tensors]
    count = 1
    for each in choices:
        count *= len(each)
    if count <= MOST_CALLS:
        yield from itertools.product(*choices)
        return
    for index, each in enumerate(choices):
        for placement in each:
            yield tuple(placement if other == index else Replicate() for other in range(len(tensors)))
    for dim in range(max(tensor.dim() for tensor in tensors)):
        yield tuple(Shard(dim) if tensor.dim() > dim else Replicate() for tensor in tensors)
    yield (Partial(),) * len(tensors)


def _fits(rule: AxisRule, tensors: list[Tensor], outputs: list[Tensor | None]) -> bool:
    """Whether all dims exist, every output has a placement, and nothing but a sum comes in partial."""
    if len(rule.inputs) != len(tensors) or len(rule.outputs) != len(outputs):
        return False
    for code, tensor in zip((*rule.inputs, *rule.outputs), (*tensors, *outputs), strict=True):
        if (code is None) != (tensor is None) or (code is not None and tensor is not None and code > tensor.dim()):
            return False
    return all(code >= -1 for code in rule.inputs)


def _code(placement: Any) -> int | None:
    if isinstance(placement, _ShardingPlaceholder):
        return shard(placement.dim)
    if type(placement) is Replicate:
        return REPLICATE
    if type(placement) is Shard:
        return shard(placement.dim)
    if type(placement) is Partial and placement.reduce_op in PARTIAL_KINDS:
        return -1 - PARTIAL_KINDS.index(placement.reduce_op)
    return None


def _known(codes: Iterable[int | None]) -> Iterator[int]:
    return (code for code in codes if code is not None)


def _as_list(output: Any) -> list[Any]:
    return list(output) if isinstance(output, (list, tuple)) else [output]


def _meta(tensor: Tensor) -> TensorMeta:
    return TensorMeta(tensor.shape, tensor.stride(), tensor.dtype)


@lru_cache
def _mesh(size: int) -> DeviceMesh:
    return DeviceMesh("cpu", torch.arange(size), mesh_dim_names=("axis",), _init_backend=False, _rank=0)
