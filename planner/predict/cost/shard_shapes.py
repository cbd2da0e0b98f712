"""The operator shapes worth measuring: those that a model runs on one device, at each tensor-parallel degree.

The same splitting as ``planner.predict.cost.operator_time``: column-parallel matrices split n, row-parallel ones k,
experts split by expert parallelism, heads and features by tensor parallelism.  A degree that does not divide a size is
left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from planner.model.operator import Operator
from planner.model.operators import embedding_operators, head_operators, layer_operators
from planner.model.spec import ModelSpec
from profiles.measure.case import WantedShape

EXPERT_DEGREES = (1, 8)
"""All experts on one device, and a usual expert-parallel degree."""


def shard_shapes(spec: ModelSpec, tensor_parallel: Sequence[int], sequence_length: int) -> list[WantedShape]:
    """Every distinct shape of one micro-batch of one sequence, in the order in which a layer runs them."""
    found: dict[str, WantedShape] = {}
    for tp in tensor_parallel:
        for norm, operator in _operators(spec):
            for shape in _shapes(spec, norm, operator, tp, sequence_length):
                found.setdefault(f"{shape.operator} {shape.name} {sorted(shape.sizes.items())}", shape)
    return list(found.values())


def _operators(spec: ModelSpec) -> Iterator[tuple[str, Operator]]:
    """(kind of norm, operator) of all layer kinds and both ends."""
    for kind, layer in enumerate(spec.layer_kinds):
        yield from ((layer.norm, operator) for operator in layer_operators(spec, kind))
    last = spec.layer_kinds[-1].norm
    yield from ((last, operator) for operator in (*embedding_operators(spec), *head_operators(spec)))


def _shapes(spec: ModelSpec, norm: str, operator: Operator, tp: int, tokens: int) -> Iterable[WantedShape]:
    if operator.op_class in ("matmul", "router") and operator.in_features:
        return _matmul(operator, tp, tokens)
    if operator.op_class == "grouped_matmul":
        return _grouped(operator, tokens)
    if operator.op_class == "attention":
        return _attention(operator, tp, tokens)
    if operator.op_class == "norm" and norm != "none_affine":
        name = "rms_norm" if norm == "rms" else "layer_norm"
        return _each("norm", name, tokens, "hidden_size", operator.read_width, sorted({1, tp}), split_rows=True)
    if operator.op_class == "activation":
        name = "silu_mul" if operator.read_width > operator.write_width else "gelu"
        width = round(operator.write_width / operator.tokens_per_token)
        degrees = [tp] if operator.shard == "features" else [1]
        return _each("activation", name, round(tokens * operator.tokens_per_token), "ffn_hidden_size", width, degrees)
    if operator.op_class == "embedding" and operator.shard == "vocabulary" and spec.vocab_size % tp == 0:
        width = spec.embedding_size or spec.hidden_size
        sizes = {"num_tokens": tokens, "vocab_size": spec.vocab_size // tp, "hidden_size": width}
        return [WantedShape("embedding", "embedding", sizes)]
    if operator.op_class == "cross_entropy":
        return _each("cross_entropy", "cross_entropy", tokens, "vocab_size", spec.vocab_size, [tp])
    return []


def _matmul(operator: Operator, tp: int, tokens: int) -> Iterable[WantedShape]:
    n, k = operator.out_features, operator.in_features
    if operator.shard in ("column", "vocabulary"):
        n, left = divmod(n, tp)
    elif operator.shard == "row":
        k, left = divmod(k, tp)
    else:
        left = 0
    return [] if left else [WantedShape("matmul", operator.name, {"m": tokens, "n": n, "k": k})]


def _grouped(operator: Operator, tokens: int) -> Iterable[WantedShape]:
    rows = tokens * operator.tokens_per_token
    for degree in EXPERT_DEGREES:
        groups, left = divmod(operator.num_experts, degree)
        if groups and not left:
            sizes = {"num_groups": groups, "m": max(round(rows / groups), 1)}
            sizes |= {"n": operator.out_features, "k": operator.in_features}
            yield WantedShape("grouped_matmul", "experts", sizes)


def _attention(operator: Operator, tp: int, tokens: int) -> Iterable[WantedShape]:
    windowed = operator.window is not None and operator.window < tokens
    # torch's fused attention has no sliding window, and a full one would be another operator.
    if windowed or operator.stride > 1 or operator.num_heads % tp:
        return
    sizes = {"batch_size": 1, "query_length": tokens, "key_length": tokens, "num_heads": operator.num_heads // tp}
    sizes |= {"num_kv_heads": max(operator.num_kv_heads // tp, 1), "head_dim": operator.qk_dim}
    if operator.v_dim != operator.qk_dim:
        sizes["value_head_dim"] = operator.v_dim
    yield WantedShape("attention", "sdpa", sizes, causal=operator.causal)


def _each(
    operator: str,
    name: str,
    rows: int,
    width_name: str,
    width: int,
    degrees: Iterable[int],
    *,
    split_rows: bool = False,
) -> Iterator[WantedShape]:
    """The operator split over each degree: its rows (sequence parallel norms) or its width."""
    for degree in degrees:
        split = rows if split_rows else width
        if split % degree == 0:
            sizes = (split // degree, width) if split_rows else (rows, split // degree)
            yield WantedShape(operator, name, dict(zip(("num_tokens", width_name), sizes, strict=True)))
