"""What the time of a layer depends on: the columns of a core, and its strategy on the plainest schedule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.strategy.rows import StrategyRows

CORE_COLUMNS = (
    "tp",
    "cp",
    "pp",
    "dp",
    "ep",
    "etp",
    "micro_batch_size",
    "num_microbatches",
    "sp",
    "ring",
    "overlap_tp",
    "overlap_ep",
    "dispatcher",
)


def core_rows(columns: NDArray[np.int64]) -> StrategyRows:
    """``CORE_COLUMNS`` [C, R] as strategies on the plainest schedule."""
    named = dict(zip(CORE_COLUMNS, columns, strict=True))
    zeros, ones = (np.full(columns.shape[1], value, dtype=np.int64) for value in (0, 1))
    return StrategyRows(
        **named,
        vpp=ones,
        group=zeros,
        schedule=zeros,
        pp_inner=zeros,
        dp_replicate=ones,
        zero=zeros,
        relief=zeros,
        optimizer_offload=zeros,
        overlap_grad=ones,
        overlap_param=ones,
        fp8_parameters=zeros,
    )
