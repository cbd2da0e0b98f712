"""Sizes of one token from sizes of whole sequences at three lengths: ``size = a + b s + c s^2``, exactly.

``b`` is what a token costs, ``c`` what a pair of tokens costs (scores of attention that a class multiplies itself); of
products ``a`` are rows that do not depend on the sequence, elsewhere it is a constant that a pass over 2,048 tokens
does not feel.  A fourth length is predicted and compared: what does not grow like this is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from planner.model.traced.grouping import Group

_LENGTHS = (512, 1024, 2048)
"""Whole chunks and blocks of all mixers that transformers has (at most 256 tokens)."""
_TOLERANCE = 1e-6
Polynomial = tuple[Fraction, Fraction, Fraction]


def lengths_within(positions: int) -> tuple[int, int, int, int]:
    """Three lengths to fit and a fourth to check, within the places that the model has."""
    unit = min(_LENGTHS[0], max(positions // 4, 1))
    return unit, 2 * unit, 4 * unit, 3 * unit


def fitted(lengths: Sequence[int], sizes: Sequence[int]) -> Polynomial:
    """``a, b, c`` through three points (Newton's divided differences)."""
    (x0, x1, x2), (y0, y1, y2) = lengths, sizes
    first, second = Fraction(y1 - y0, x1 - x0), Fraction(y2 - y1, x2 - x1)
    c = (second - first) / (x2 - x0)
    b = first - c * (x0 + x1)
    return y0 - b * x0 - c * x0 * x0, b, c


def operators_of(groups: Sequence[Sequence[Group]], lengths: Sequence[int]) -> list[dict[str, Any]]:
    """The ``TracedOperator`` entries of one segment, of its groups at each of the four lengths.

    Raises ValueError where other operations run at another length, or sizes do not grow as said above.
    """
    if _differ(groups):  # a loop over chunks or tokens: what runs at the same place is added up
        groups = [_joined(one) for one in groups]
        if _differ(groups):
            raise ValueError("other operations run at another sequence length")
    names: dict[str, int] = {}
    entries: list[dict[str, Any]] = []
    for same in zip(*groups, strict=True):
        entry = _entry(same, lengths)
        number = names[same[0].name] = names.get(same[0].name, 0) + 1
        entry["name"] = same[0].name if number == 1 else f"{same[0].name}.{number}"
        entries.append(entry)
    return _paired(entries)


def _differ(groups: Sequence[Sequence[Group]]) -> bool:
    shapes = [[(each.op_class, each.name, each.heads) for each in one] for one in groups]
    return any(shape != shapes[0] for shape in shapes)


def _joined(groups: Sequence[Group]) -> list[Group]:
    """Groups of one place, class and shape of weights as one, where the first of them stands."""
    found: dict[Any, Group] = {}
    for each in groups:
        key = (each.op_class, each.name, each.heads, (each.depth, each.columns) if each.op_class == "matmul" else ())
        if key not in found:
            found[key] = replace(each)
            continue
        whole = found[key]
        whole.rows, whole.flops, whole.saved = (
            whole.rows + each.rows,
            whole.flops + each.flops,
            whole.saved + each.saved,
        )
        whole.read, whole.written = whole.read + each.read, whole.written + each.written
        whole.learned += each.learned
    return list(found.values())


def _entry(same: Sequence[Group], lengths: Sequence[int]) -> dict[str, Any]:
    def per(sizes: Sequence[int]) -> Polynomial:
        return fitted(lengths[:3], sizes[:3])

    first = same[0]
    entry: dict[str, Any] = {"op_class": first.op_class, "parameters": first.learned}
    entry |= {
        "read_width": _whole(per([each.read for each in same])[1]),
        "write_width": _whole(per([each.written for each in same])[1]),
    }
    saved = per([each.saved for each in same])
    entry |= {"saved_width": float(max(saved[1], Fraction(0))), "kept_scores": _whole(saved[2])}
    if first.op_class == "attention":
        return entry | _attention(same, lengths)
    if first.op_class == "convolution":
        return entry | {"flops": float(per([each.flops for each in same])[1])}
    return entry | _product(same, lengths) if first.op_class == "matmul" else entry


def _attention(same: Sequence[Group], lengths: Sequence[int]) -> dict[str, Any]:
    if any((each.rows, each.columns) != (length, length) for each, length in zip(same, lengths, strict=True)):
        raise ValueError("attention over another sequence than its own")
    heads, kv_heads, qk_dim, v_dim = same[0].heads
    shape: dict[str, Any] = {"num_heads": heads, "num_kv_heads": kv_heads, "qk_dim": qk_dim, "v_dim": v_dim}
    return shape | {"window": same[0].window, "causal": same[0].causal}


def _product(same: Sequence[Group], lengths: Sequence[int]) -> dict[str, Any]:
    """A product of tokens with a weight, or of tokens with tokens."""
    a, b, c = fitted(lengths[:3], [each.rows for each in same[:3]])
    first = same[0]
    fixed = len({(each.depth, each.columns) for each in same}) == 1
    _check(same, lengths, lambda each: each.rows * each.depth * each.columns)
    if fixed and c == 0 and a >= 0:
        shape = {"op_class": "grouped_matmul", "num_experts": first.experts} if first.experts else {}
        return shape | {
            "in_features": first.depth,
            "out_features": first.columns,
            "rows": float(b),
            "further_rows": _whole(a),
        }
    flops = fitted(lengths[:3], [2 * each.rows * each.depth * each.columns for each in same[:3]])
    if flops[0] or flops[1]:  # states that pass from chunk to chunk: small products, priced as a recurrence
        return {"op_class": "convolution", "flops": float(flops[1] + flops[2] * lengths[2])}
    # 2 * s * heads * (qk_dim + v_dim) FLOPs a token: scores where the columns grow, their use where the depth does.
    heads = max(_whole(b), 1) if c == 0 else 1
    width = flops[2] / (2 * heads)
    if width.denominator != 1:
        heads, width = 1, Fraction(_whole(flops[2] / 2))
    scores = same[1].columns != first.columns
    names = ("qk_dim", "v_dim") if scores else ("v_dim", "qk_dim")
    shape = {"op_class": "attention", "num_heads": heads, "num_kv_heads": heads, "causal": False}
    return shape | {names[0]: int(width), names[1]: 0}


def _check(same: Sequence[Group], lengths: Sequence[int], size: Callable[[Group], int]) -> None:
    a, b, c = fitted(lengths[:3], [size(each) for each in same[:3]])
    length, found = lengths[3], size(same[3])
    predicted = a + b * length + c * length * length
    if abs(float(predicted) - found) > _TOLERANCE * max(found, 1):
        raise ValueError(f"{same[0].name} does not grow with the sequence as a + b s + c s^2")


def _paired(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Scores, what runs on them, and their use become one attention, which keeps the scores.

    Whatever keeps elements for each pair of tokens hands them to the attention that it belongs to.
    """
    found: list[dict[str, Any]] = []
    waiting = 0
    for entry in entries:
        own = entry["op_class"] == "attention"
        before = next((each for each in reversed(found) if each["op_class"] == "attention"), None)
        open_scores = before is not None and before["v_dim"] == 0 and not before["causal"]
        if own and open_scores and before is not None and entry["qk_dim"] == 0:
            before["v_dim"], before["write_width"] = entry["v_dim"], entry["write_width"]
            before["saved_width"] += entry["saved_width"]
            before["kept_scores"] += entry["kept_scores"]
            before["parameters"] += entry["parameters"]
            continue
        if not own and entry["kept_scores"]:
            waiting, entry["kept_scores"] = waiting + entry["kept_scores"], 0
            if before is not None:
                before["kept_scores"] += waiting
                waiting = 0
        found.append(entry)
    return found


def _whole(value: Fraction) -> int:
    return max(round(value), 0)
