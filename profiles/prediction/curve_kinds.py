"""The sizes that make an operator's curves: for each operator class, the axis, the site and the roofline.

Products and attention have curves over their rows or sequence, one a site.  Memory-bound classes have one curve over
the bytes that they move; their only site is 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from profiles.arrays import Array
from profiles.prediction.roofline import Roofline


@dataclass(frozen=True, slots=True)
class CurveKind:
    """How one operator class becomes curves: its shape columns, which is the axis, and its roofline.

    ``variant`` is the column that tells tables apart (head size, phase); ``phases`` those that are looked up.
    """

    operator: str
    columns: tuple[str, ...]
    axis: str
    sites: tuple[str, ...]
    variant: str
    phases: tuple[str, ...]
    roofline_s: Callable[[Roofline, dict[str, Array]], Array]


CURVE_KINDS = (
    CurveKind(
        "matmul",
        ("m", "n", "k"),
        "m",
        ("n", "k"),
        "phase",
        ("forward", "dgrad", "wgrad", "unknown"),
        lambda roof, size: roof.matmul_s(size["m"], size["n"], size["k"]),
    ),
    CurveKind(
        "grouped_matmul",
        ("m", "n", "k", "num_groups"),
        "m",
        ("n", "k", "num_groups"),
        "",
        ("forward",),
        lambda roof, size: roof.matmul_s(size["m"], size["n"], size["k"], size["num_groups"]),
    ),
    CurveKind(
        "attention",
        ("batch_size", "query_length", "num_heads", "num_kv_heads", "head_dim"),
        "query_length",
        ("batch_size", "num_heads", "num_kv_heads"),
        "head_dim",
        ("forward", "unknown"),
        lambda roof, size: roof.attention_s(
            size["batch_size"], size["query_length"], size["num_heads"], size["num_kv_heads"], size["head_dim"]
        ),
    ),
)


def kind_of(operator: str) -> CurveKind | None:
    """How the tables of ``operator`` are laid out; None for memory-bound classes."""
    return next((kind for kind in CURVE_KINDS if kind.operator == operator), None)
