"""Layers whose rows are not the tokens of their sequence: several streams of a token, or rows besides the tokens.

Streams (ProphetNet, arXiv 2001.04063, section 2.2): beside its own, a token has a row for each further token that it
predicts.  All of them run through every projection; a further stream sees the keys of the first one and its own, so of
``n`` streams the attention of a layer takes ``2 n - 1`` times the FLOPs of one.
Further rows (PEGASUS-X, arXiv 2208.04347, section 3.1): learned tokens beside those of the sequence, the same number
whatever its length.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pydantic import Field

from planner.model.operator import Operator
from profiles.document import Document


class RowsSpec(Document):
    """Rows of a layer beside one for each token of its sequence."""

    streams: int = Field(default=1, gt=0, description="rows of every token")
    further: int = Field(default=0, ge=0, description="rows of every sequence besides those of its tokens")


def with_rows(operators: Iterable[Operator], rows: RowsSpec) -> tuple[Operator, ...]:
    """The operators of one layer, run for these rows; what is made of the encoder's tokens is made once."""
    return tuple(_with_rows(operator, rows) for operator in operators)


def _with_rows(operator: Operator, rows: RowsSpec) -> Operator:
    streams, attends = rows.streams, operator.op_class == "attention"
    if operator.of_source and not attends:
        return operator
    seen = streams if operator.of_source else 2 * streams - 1
    return replace(
        operator,
        tokens_per_token=operator.tokens_per_token * streams,
        read_width=operator.read_width * streams,
        write_width=operator.write_width * streams,
        saved_width=operator.saved_width * streams,
        flops=operator.flops * streams,
        qk_dim=operator.qk_dim * (seen if attends else 1),
        v_dim=operator.v_dim * (seen if attends else 1),
        further_rows=rows.further if operator.op_class == "matmul" else 0,
    )
