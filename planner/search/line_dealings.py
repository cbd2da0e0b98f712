"""What every dealing of a line of layers comes to at least, with each layer where it stands.

``planner.search.line_bound`` lets every stage hold the span of its length that suits it best.  Where kinds of layers
differ, only the stages where the light ones stand can hold them: a model whose first three layers are dense has one
short span, not one a stage.  Here a dynamic program over (stage, start) goes through the dealings themselves, for each
of four values alone::

    least over dealings of  max_r rest_r,  max_r dense_r,  max_r expert_r,  sum_r relief_r

where every stage fits its memory and no span is longer than what can be fast enough.  ``rest_r`` is what stage r adds
to the path through it (``planner.search.line_paths``).  The step falls with none of the four, so that together they
bound it.  Shape letters: R rows, Q pairs of a row and a number of relieved layers, P stages, N layer kinds, K moments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.predict.cost.row_cost import RowCost
from planner.predict.memory.moments import Moment
from solver.arrays import Array, Ints
from solver.selection.kernel import INT_ROWS, INTS, NOTHING, REAL, REAL_ROWS, inner, kernel

LAYER_S, FORWARD_S, RELIEF_S, SAVED, SAVING, DENSE, EXPERT, FROZEN = range(8)
"""Columns of a layer, N each."""
REST, FULLEST_DENSE, FULLEST_EXPERT, RELIEF = range(4)
"""Columns of the answer."""


@dataclass(frozen=True, slots=True)
class Line:
    """Rows of one number of stages, as the kernel reads them.

    ``kinds``: of every layer; ``least`` [P]: fewest layers of each stage; ``layers`` [R, 8 N]; ``times`` [R, 1 + P]:
    ``LinePaths.weights``; ``ends`` [R, 3 P]: what the ends add to the rest, the dense and the expert parameters of each
    stage; ``moments`` [R, K (2 + 3 P)]: bytes a dense and an expert parameter, then micro-batches in flight, fixed
    bytes and bytes of a replay of each stage.
    """

    kinds: Ints
    least: Ints
    limit_bytes: float
    layers: Array
    times: Array
    ends: Array
    moments: Array

    def least_values(self, row: Ints, relieved: Ints, longest: Ints) -> Array:
        """The four values of each pair: [Q, 4]; infinity where no dealing fits.

        ``relieved`` [Q]: layers that each chunk relieves, the first ones; ``longest`` [Q]: most layers of a stage.
        """
        values = np.full((len(row), 4), np.inf)
        pairs = np.stack([row, relieved, longest], axis=1)
        tables = self.layers, self.times, self.ends, self.moments
        _least_values(self.kinds, self.least, pairs, self.limit_bytes, *tables, values)
        return values


def layer_columns(cost: RowCost) -> Array:
    """``Line.layers`` of some rows: [R, 8 N]."""
    saving = cost.saved_bytes - cost.relieved_bytes
    times = cost.layer_s, cost.layer_forward_s, cost.relief_s
    weights = cost.layer_dense, cost.layer_expert, cost.frozen.layer
    return np.concatenate([*times, cost.saved_bytes, saving, *weights], axis=1)


def moment_columns(moments: tuple[Moment, ...]) -> Array:
    """``Line.moments`` of some rows: [R, K (2 + 3 P)]."""
    parts = []
    for each in moments:
        states = each.dense_state.total[:, None], each.expert_state.total[:, None]
        parts += [*states, each.in_flight, each.fixed_bytes, each.replay_bytes]
    return np.concatenate(parts, axis=1)


@inner
def _fits(moments: Any, stage: int, stages: int, span: Any, again: bool, limit_bytes: float) -> bool:
    """Whether a stage holds a ``span`` at every moment; ``again``: layers are replayed."""
    for at in range(0, len(moments), 2 + 3 * stages):
        held = span[DENSE] * moments[at] + span[EXPERT] * moments[at + 1] + span[FROZEN]
        flight, fixed, replay = at + 2 + stage, at + 2 + stages + stage, at + 2 + 2 * stages + stage
        held += moments[flight] * span[SAVED] + moments[fixed]
        if again:
            held += moments[replay]
        if held > limit_bytes:
            return False
    return True


@inner
def _add(span: Any, layers: Any, kind: int, relieved: bool) -> None:
    """Make a ``span`` longer by a layer of one kind: its sums of the columns of layers, where they are relieved."""
    number = len(layers) // 8
    for column in (LAYER_S, FORWARD_S, SAVED, DENSE, EXPERT, FROZEN):
        span[column] += layers[column * number + kind]
    if relieved:
        span[RELIEF_S] += layers[RELIEF_S * number + kind]
        span[SAVED] -= layers[SAVING * number + kind]


@kernel(NOTHING(INTS, INTS, INT_ROWS, REAL, REAL_ROWS, REAL_ROWS, REAL_ROWS, REAL_ROWS, REAL_ROWS))
def _least_values(  # noqa: PLR0917  (a model, its rows, and where the answer goes)
    kinds: Any,
    least: Any,
    pairs: Any,
    limit_bytes: float,
    layers: Any,
    times: Any,
    ends: Any,
    moments: Any,
    values: Any,
) -> None:
    """Fill ``values`` [Q, 4] of ``pairs`` [Q, 3]: row, relieved layers a chunk, longest span."""
    stages, items = len(least), len(kinds)
    before, after, span = np.empty((items + 1, 4)), np.empty((items + 1, 4)), np.empty(8)
    for pair in range(len(pairs)):
        row, relieved, longest = pairs[pair, 0], pairs[pair, 1], pairs[pair, 2]
        before[:] = np.inf
        before[0] = 0.0
        later = least.sum()
        for stage in range(stages):
            # Fewest and most layers of the stages that follow.
            later, room = later - least[stage], (stages - 1 - stage) * longest
            after[:] = np.inf
            for start in range(items + 1):
                if before[start, REST] == np.inf:
                    continue
                span[:] = 0.0
                for count in range(min(longest, items - start - later) + 1):
                    if count > 0:
                        _add(span, layers[row], kinds[start + count - 1], count <= relieved)
                    stop, again = start + count, count > 0 and relieved > 0
                    if count < least[stage] or stop + room < items:
                        continue
                    if not _fits(moments[row], stage, stages, span, again, limit_bytes):
                        continue
                    rest_s = times[row, 0] * (span[LAYER_S] + span[RELIEF_S]) - times[row, 1 + stage] * span[FORWARD_S]
                    rest_s += ends[row, stage]
                    dense, expert = (
                        span[DENSE] + ends[row, stages + stage],
                        span[EXPERT] + ends[row, 2 * stages + stage],
                    )
                    after[stop, REST] = min(after[stop, REST], max(before[start, REST], rest_s))
                    most = max(before[start, FULLEST_DENSE], dense)
                    after[stop, FULLEST_DENSE] = min(after[stop, FULLEST_DENSE], most)
                    most = max(before[start, FULLEST_EXPERT], expert)
                    after[stop, FULLEST_EXPERT] = min(after[stop, FULLEST_EXPERT], most)
                    after[stop, RELIEF] = min(after[stop, RELIEF], before[start, RELIEF] + span[RELIEF_S])
            before, after = after, before
        for value in range(4):
            values[pair, value] = before[items, value]
