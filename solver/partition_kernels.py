"""The inner loops of ``solver.stage_partition``, compiled: what is still to come, options of a stage, dominance.

They add and compare in the order of the NumPy expressions that they stand for, so that the sums are the same to the
bit.  Shape letters: S stages, A starts, C counts, R labels, V values of a label.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solver.selection.kernel import FLAGS, INT, INTS, NOTHING, REAL, REAL_ROWS, REALS, kernel
from solver.selection.kernel_types import Type

REAL_TABLES = Type("float64", 3)


@kernel(NOTHING(REAL_TABLES, REAL_TABLES, INT, INT, REAL_ROWS))
def finish(add: Any, values: Any, low: int, sums: int, rest: Any) -> None:
    """Fill ``rest`` [S + 1, A]: the least that ``values`` [S, A, C] of the stages to come make.

    Their sum where ``sums`` is 1, the largest of them where it is 0.  Where ``add`` is infinite nothing can be given;
    infinite where no way ends at the last start.
    """
    stages, starts, width = values.shape
    rest[stages, :] = np.inf
    rest[stages, starts - 1] = 0.0
    for stage in range(stages - 1, -1, -1):
        for start in range(starts):
            least = np.inf
            for column in range(min(width, starts - start - low)):
                after = rest[stage + 1, start + low + column]
                if add[stage, start, column] < np.inf and after < np.inf:
                    value = values[stage, start, column]
                    least = min(least, value + after if sums else max(value, after))
            rest[stage, start] = least


@kernel(INT(REAL_ROWS, REALS, INT, REAL, INTS, REALS, INTS, INTS, INTS, REALS))
def options(  # noqa: PLR0917  (the stage, the labels, and where the answer goes)
    add: Any,
    rest: Any,
    low: int,
    limit: float,
    stop: Any,
    total: Any,
    parent: Any,
    column: Any,
    cell: Any,
    sums: Any,
) -> int:
    """Every label [R] with every number of items of a stage whose sum can stay within ``limit``; how many there are.

    ``add`` [A, C] of the stage, ``rest`` [A]: the sum still to come after it; ``stop`` and ``total`` [R] of the labels.
    Filled: the label, the items less ``low``, the place in the stage's tables, the sum so far.
    """
    found, (starts, width) = 0, add.shape
    for label in range(len(stop)):
        start = stop[label]
        for items in range(min(width, starts - start - low)):
            after = rest[start + low + items]
            if add[start, items] < np.inf and after < np.inf:
                value = total[label] + add[start, items]
                if value <= limit - after:
                    parent[found], column[found], cell[found] = label, items, start * width + items
                    sums[found] = value
                    found += 1
    return found


@kernel(NOTHING(INTS, REAL_ROWS, FLAGS))
def beaten(start: Any, values: Any, out: Any) -> None:
    """Mark in ``out`` [R] the labels to which an earlier one of their start is nowhere above in ``values`` [R, V].

    Labels of one start follow each other.  One that is beaten need not be asked: who beat it beats no fewer.
    """
    begin = 0
    for label in range(len(start)):
        if start[label] != start[begin]:
            begin = label
        out[label] = False
        for other in range(begin, label):
            if out[other]:
                continue
            above = False
            for place in range(values.shape[1]):
                if values[other, place] > values[label, place]:
                    above = True
                    break
            if not above:
                out[label] = True
                break
