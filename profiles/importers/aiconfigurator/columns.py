"""The meaning of AIConfigurator's columns: one mapping for each kind of table, chosen by its columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from profiles.shipped_tables import shipped_table

Phase = Literal["forward", "unknown"]
_USUAL_TIME = ("latency", 1e-3)


@dataclass(frozen=True, slots=True)
class TableKind:
    """One kind of operator table.

    ``needs``: columns that identify it.  ``shape``: our size name -> their column.  ``time``: column, seconds a unit.
    """

    operator: str
    needs: frozenset[str]
    shape: dict[str, str]
    dtype: str = ""
    time: tuple[str, float] = _USUAL_TIME
    causal: bool | None = None


TOGETHER: tuple[frozenset[str], ...] = (
    frozenset({"dispatch_avg_t_us", "combine_avg_t_us"}),
    frozenset({"dispatch_transmit_us", "combine_transmit_us"}),
)
"""Tables that hold two operators a row: both kinds are read."""

DTYPES = ("attn_dtype", "mla_dtype", "bmm_dtype", "moe_dtype", "quant_dtype")
"""Where a kind names no column of its own: the first of these that the table has is the number format."""

COLLECTIVE_DTYPES = ("nccl_dtype", "allreduce_dtype")
NOT_DETAIL = frozenset(
    {"framework", "version", "device", "op_name", "latency", "avg_ms", "message_size", "num_gpus", *COLLECTIVE_DTYPES}
)
"""Stored elsewhere; every other column that the shape does not use goes into ``detail``."""


@cache
def table_kinds() -> tuple[TableKind, ...]:
    """All kinds, in the order in which they are asked (``columns.toml``)."""
    rows = shipped_table("profiles.importers.aiconfigurator", "columns.toml")["kinds"]
    return tuple(
        TableKind(**{**row, "needs": frozenset(row["needs"]), "time": tuple(row.get("time", _USUAL_TIME))})
        for row in rows
    )


def kinds_of(names: set[str]) -> list[TableKind]:
    """The kinds of operator that a table with these columns holds; empty = unknown table."""
    found = [kind for kind in table_kinds() if kind.needs <= names]
    if not found:
        return []
    if any(pair <= names for pair in TOGETHER):
        return [kind for kind in found if kind.operator.startswith("expert_")]
    return found[:1]
