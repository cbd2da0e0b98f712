"""Which ZeRO stage does a framework run under a pipeline, whatever the strategy calls it?

The traits ``pipeline_keeps_whole`` and ``pipeline_reduces_last`` (``planner.framework.communication``) say that the
stages of a pipeline gather parameters once a step and accumulate whole gradients, which are reduced once.  That is
ZeRO-1 in time (one reduce_scatter and one all_gather a step) and in memory (whole 16-bit parameters and whole
gradients in the dtype of the reduction, optimizer states sharded), so such rows are costed as ZeRO-1.

Shape letter: R rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.framework.traits import FrameworkTraits
from planner.strategy_rows import StrategyRows


def rows_as_run(rows: StrategyRows, framework: FrameworkTraits) -> StrategyRows:
    """The rows with the ZeRO stage and the overlap of gradients that the framework really runs: [R]."""
    if not (framework.pipeline_keeps_whole or framework.pipeline_reduces_last):
        return rows
    piped = rows.pp > 1
    zero, overlap_grad = rows.zero, rows.overlap_grad
    if framework.pipeline_keeps_whole:
        zero = np.where(piped, np.minimum(zero, 1), zero)
    if framework.pipeline_reduces_last:
        overlap_grad = np.where(piped, 0, overlap_grad)
    return replace(rows, zero=zero, overlap_grad=overlap_grad)
