"""The sizes of one call of a PyTorch operator, from the dimensions of its arguments.

Products: ``m, n, k`` are rows, columns and inner size of the product as it ran (a weight gradient has the tokens as
``k``), ``batch_size`` the number of products of a batched one.  A grouped product has the sizes of its forward: ``m``
is the mean number of rows of a group, and two plain matrices are the gradient of the weights.  Attention: ``[b, h, s,
d]`` or ``[b, s, h, d]`` by the operator's own convention; packed sequences ``[tokens, h, d]`` give ``num_tokens``.
What has no name among ``SHAPE_NAMES`` goes into the detail as text, so that different calls are never mixed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Literal

from profiles.importing.torch_dtypes import torch_dtype
from profiles.importing.torch_operators import OperatorRule
from profiles.observations.records import Scalar

_MAX_TEXT = 160
_LARGEST = 2**62


@dataclass(frozen=True, slots=True)
class CallShape:
    """Sizes of one call: what ``OperatorObservation`` takes.

    ``grouped_by`` of a grouped product: its groups are slices of the ``rows``, or of the ``inner`` axis that it sums
    over.  Which outer size of the latter is the forward's ``n`` the call does not say: taken as ``[k, rows] x [rows,
    n]``.
    """

    shape: dict[str, int] = field(default_factory=dict)
    detail: dict[str, Scalar] = field(default_factory=dict)
    dtype: str = ""
    causal: bool | None = None
    decode: bool = False
    grouped_by: Literal["", "rows", "inner"] = ""


Dims = list[int]


def call_shape(
    rule: OperatorRule, dims: Sequence[object], types: Sequence[object], concrete: Sequence[object]
) -> CallShape:
    """Sizes of a call of a known operator; an empty shape where the arguments do not have the expected form."""
    tensors = [_tensor(entry) for entry in dims]
    dtype = _dtype(rule, types)
    causal = _switch(concrete, rule.causal)
    if rule.layout == "grouped":
        return _grouped_call(rule, tensors, dtype)
    shape = _LAYOUTS[rule.layout](rule, tensors, dims, concrete)
    detail: dict[str, Scalar] = {}
    if rule.layout == "convolution":
        detail = _convolution_detail(rule, tensors, concrete)
    elif rule.operator == "norm" and rule.layout == "elements":
        detail = {"input_dims": _text(tensors[rule.first : rule.first + 1])}
    decode = rule.operator == "attention" and shape.get("query_length") == 1 and not rule.backward
    return CallShape(
        {name: size for name, size in shape.items() if 0 <= size < _LARGEST}, detail, dtype, causal, decode
    )


def free_shape(dims: Sequence[object], types: Sequence[object]) -> CallShape:
    """Sizes of a call of an operator without a rule: the largest argument, and all arguments as text."""
    tensors = [_tensor(entry) for entry in dims]
    sizes = [prod(each) for each in tensors if each]
    if not sizes:
        return CallShape()
    dtype = next((found for each in types if (found := torch_dtype(each))), "")
    largest = max(sizes)
    shape = {"num_elements": largest} if largest < _LARGEST else {}
    return CallShape(shape, {"input_dims": _text([each for each in tensors if each])}, dtype)


def tensor_list_elements(dims: Sequence[object], position: int = 0) -> int | None:
    """Elements of all tensors in a list argument: parameters of a fused optimizer step."""
    if position >= len(dims) or not isinstance(dims[position], list):
        return None
    tensors = [_tensor(entry) for entry in dims[position]]  # type: ignore[attr-defined]
    total = sum(prod(each) for each in tensors if each)
    return total if 0 < total < _LARGEST else None


def _tensor(entry: object) -> Dims:
    """Dimensions of one tensor; empty for scalars, lists of tensors and anything else."""
    if not isinstance(entry, list) or not 0 < len(entry) <= 16:
        return []
    whole = all(isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 2**48 for size in entry)
    return list(entry) if whole else []


def _dtype(rule: OperatorRule, types: Sequence[object]) -> str:
    if rule.first < len(types) and (found := torch_dtype(types[rule.first])):
        return found
    return next((found for each in types if (found := torch_dtype(each))), "")


def _switch(concrete: Sequence[object], position: int | None) -> bool | None:
    if position is None or position >= len(concrete):
        return None
    return {"true": True, "false": False}.get(str(concrete[position]).strip().casefold())


def _operands(rule: OperatorRule, tensors: list[Dims], count: int) -> list[Dims] | None:
    found = tensors[rule.first : rule.first + count]
    return found if len(found) == count and all(found) else None


def _product(
    rule: OperatorRule, tensors: list[Dims], dims: Sequence[object], concrete: Sequence[object]
) -> dict[str, int]:
    pair = _operands(rule, tensors, 2)
    if pair is None or len(pair[0]) != 2 or len(pair[1]) != 2 or pair[0][1] != pair[1][0]:
        return {}
    return {"m": pair[0][0], "n": pair[1][1], "k": pair[0][1]}


def _batched(
    rule: OperatorRule, tensors: list[Dims], dims: Sequence[object], concrete: Sequence[object]
) -> dict[str, int]:
    pair = _operands(rule, tensors, 2)
    if pair is None or len(pair[0]) != 3 or len(pair[1]) != 3 or pair[0][2] != pair[1][1]:
        return {}
    return {"batch_size": pair[0][0], "m": pair[0][1], "n": pair[1][2], "k": pair[0][2]}


def _vector(
    rule: OperatorRule, tensors: list[Dims], dims: Sequence[object], concrete: Sequence[object]
) -> dict[str, int]:
    pair = _operands(rule, tensors, 2)
    if pair is None or len(pair[0]) != 2:
        return {}
    return {"m": pair[0][0], "n": 1, "k": pair[0][1]}


def _linear(
    rule: OperatorRule, tensors: list[Dims], dims: Sequence[object], concrete: Sequence[object]
) -> dict[str, int]:
    pair = _operands(rule, tensors, 2)
    if pair is None or len(pair[1]) != 2 or pair[0][-1] != pair[1][1]:
        return {}
    return {"m": prod(pair[0][:-1]), "n": pair[1][0], "k": pair[0][-1]}


def _matmul(
    rule: OperatorRule, tensors: list[Dims], dims: Sequence[object], concrete: Sequence[object]
) -> dict[str, int]:
    pair = _operands(rule, tensors, 2)
    if pair is None or len(pair[0]) < 2 or len(pair[1]) < 2 or pair[0][-1] != pair[1][-2]:
        return {}
    left, right = pair
    if len(right) == 2:
        return {"m": prod(left[:-1]), "n": right[1], "k": left[-1]}
    batch = max(prod(left[:-2]), prod(right[:-2]))
    return {"batch_size": batch, "m": left[-2], "n": right[-1], "k": left[-1]}


def _grouped_call(rule: OperatorRule, tensors: list[Dims], dtype: str) -> CallShape:
    pair = _operands(rule, tensors, 2)
    if pair is None:
        return CallShape(dtype=dtype)
    left, right = pair
    if len(left) == len(right) == 3 and left[0] == right[0] and left[2] == right[1]:
        return CallShape({"num_groups": left[0], "m": left[1], "n": right[2], "k": left[2]}, dtype=dtype)
    if len(left) == 2 and len(right) == 3 and left[1] == right[1]:
        sizes, detail = _mean_rows(left[0], right[0])
        return CallShape({**sizes, "n": right[2], "k": left[1]}, detail, dtype, grouped_by="rows")
    groups = _groups(tensors[rule.first + 2 :])
    if len(left) == len(right) == 2 and left[1] == right[0] and groups:
        sizes, detail = _mean_rows(left[1], groups)
        return CallShape({**sizes, "n": right[1], "k": left[0]}, detail, dtype, grouped_by="inner")
    return CallShape(dtype=dtype)


def _mean_rows(rows: int, groups: int) -> tuple[dict[str, int], dict[str, Scalar]]:
    """Number of groups and mean rows of one; all rows as a detail where the mean is not a whole number."""
    if not groups or rows < groups:
        return {"num_groups": groups}, {"rows": rows}
    mean = round(rows / groups)
    return {"num_groups": groups, "m": mean}, {} if mean * groups == rows else {"rows": rows}


def _groups(others: list[Dims]) -> int:
    """Length of the list of group ends; 0 if there is none.  The scales of fp8 are lists too, one for each row."""
    lists = [each[0] for each in others if len(each) == 1]
    return min(lists) if lists else 0


def _attention(
    rule: OperatorRule, tensors: list[Dims], dims: Sequence[object], concrete: Sequence[object]
) -> dict[str, int]:
    found = _operands(rule, tensors, 3)
    if found is None:
        return {}
    query, key, value = found
    if len(query) == len(key) == len(value) == 3:
        return {
            "num_tokens": query[0], "num_heads": query[1], "num_kv_heads": key[1], "head_dim": query[2],
            "value_head_dim": value[2],
        }  # fmt: skip
    if not len(query) == len(key) == len(value) == 4:
        return {}
    heads, length = (1, 2) if rule.layout == "bhsd" else (2, 1)
    return {
        "batch_size": query[0], "num_heads": query[heads], "num_kv_heads": key[heads],
        "query_length": query[length], "key_length": key[length], "head_dim": query[3], "value_head_dim": value[3],
    }  # fmt: skip


def _rows(
    rule: OperatorRule, tensors: list[Dims], dims: Sequence[object], concrete: Sequence[object]
) -> dict[str, int]:
    found = _operands(rule, tensors, 1)
    return {} if found is None else {"num_tokens": prod(found[0][:-1]), "hidden_size": found[0][-1]}


def _classes(
    rule: OperatorRule, tensors: list[Dims], dims: Sequence[object], concrete: Sequence[object]
) -> dict[str, int]:
    found = _operands(rule, tensors, 1)
    if found is None or len(found[0]) < 2:
        return {}
    return {"num_tokens": prod(found[0][:-1]), "vocab_size": found[0][-1]}


def _embedding(
    rule: OperatorRule, tensors: list[Dims], dims: Sequence[object], concrete: Sequence[object]
) -> dict[str, int]:
    pair = _operands(rule, tensors, 2)
    if pair is None or len(pair[0]) != 2:
        return {}
    return {"vocab_size": pair[0][0], "hidden_size": pair[0][1], "num_tokens": prod(pair[1])}


def _embedding_backward(
    rule: OperatorRule, tensors: list[Dims], dims: Sequence[object], concrete: Sequence[object]
) -> dict[str, int]:
    pair = _operands(rule, tensors, 2)
    if pair is None:
        return {}
    shape = {"hidden_size": pair[0][-1], "num_tokens": prod(pair[1])}
    rows = str(concrete[2]).strip() if len(concrete) > 2 else ""
    if re.fullmatch(r"[0-9]{1,15}", rows):
        shape["vocab_size"] = int(rows)
    return shape


def _list(
    rule: OperatorRule, tensors: list[Dims], dims: Sequence[object], concrete: Sequence[object]
) -> dict[str, int]:
    elements = tensor_list_elements(dims)
    return {} if elements is None else {"num_elements": elements}


def _elements(
    rule: OperatorRule, tensors: list[Dims], dims: Sequence[object], concrete: Sequence[object]
) -> dict[str, int]:
    found = _operands(rule, tensors, 1)
    return {} if found is None else {"num_elements": prod(found[0])}


def _batch_only(
    rule: OperatorRule, tensors: list[Dims], dims: Sequence[object], concrete: Sequence[object]
) -> dict[str, int]:
    found = _operands(rule, tensors, 2)
    return {} if found is None else {"batch_size": found[0][0], "num_elements": prod(found[0])}


def _nothing(
    rule: OperatorRule, tensors: list[Dims], dims: Sequence[object], concrete: Sequence[object]
) -> dict[str, int]:
    return {}


_LAYOUTS = {
    "mm": _product,
    "bmm": _batched,
    "mv": _vector,
    "linear": _linear,
    "matmul": _matmul,
    "bhsd": _attention,
    "bshd": _attention,
    "rows": _rows,
    "classes": _classes,
    "embedding": _embedding,
    "embedding_backward": _embedding_backward,
    "list": _list,
    "elements": _elements,
    "convolution": _batch_only,
    "none": _nothing,
}


def _convolution_detail(rule: OperatorRule, tensors: list[Dims], concrete: Sequence[object]) -> dict[str, Scalar]:
    pair = _operands(rule, tensors, 2)
    if pair is None:
        return {}
    detail: dict[str, Scalar] = {"input_dims": _text(pair[:1]), "weight_dims": _text(pair[1:])}
    for offset, name in enumerate(("stride", "padding", "dilation")):
        position = rule.first + 3 + offset
        if position < len(concrete) and (text := str(concrete[position]).strip()):
            detail[name] = text[:_MAX_TEXT]
    return detail


def _text(tensors: Sequence[Dims]) -> str:
    """``32x3x224x224 64x3x7x7``; long lists are cut and say how many there are."""
    parts = ["x".join(str(size) for size in each) for each in tensors[:12]]
    rest = f" +{len(tensors) - 12}" if len(tensors) > 12 else ""
    return (" ".join(parts) + rest)[:_MAX_TEXT]
