"""Which members of the declared family may be fast enough for a strategy and fit, and how long they take at least.

The compiled part of ``planner.search.family_bound``: one call for all strategies of one order.
Shape letters: R rows, F members, Q pairs of a row and a member, P stages, N layer kinds, M moments, K paths.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solver.selection.kernel import INT, INT_ROWS, INTS, NOTHING, REAL_ROWS, REALS, Type, inner, kernel

LAYER_S, FORWARD_S, BACKWARD_S, GRADIENT_S, RELIEF_S, SAVED, SAVING, DENSE, EXPERT, FROZEN = range(10)
"""Columns of a layer, N each."""
LAYERS = 10
STAGE_S, EMBEDDING_S, HEAD_S, HOP_S, TAIL_S, BACK_WHOLE, MICROBATCHES, HEAD_STAGE = range(8)
EMBEDDING_DENSE, HEAD_DENSE, HEAD_EXPERT, HOST_DENSE, HOST_EXPERT = range(8, 13)
FEW, EVERY, MOVED, USES_HOST, ENDS = range(13, 18)
"""Columns of a row, after those of its layers: ``StrategyRows`` and ``RowCost``, and what it relieves: as few layers as
memory asks for, every layer whatever memory asks for, to the host; the host holds something.  From ``ENDS`` on what one
of each column of ``FamilyPaths.ends`` takes."""
MAKESPAN_S, FULLEST_DENSE, FULLEST_EXPERT, RELIEVED_S = range(4)
"""Columns of the answer; what relief adds to each device is the last one, P long."""
CUTOFF_S, LIMIT, TOLERANCE, HOST_LIMIT = range(4)

MEMBERS = Type("float64", 3)
COUNTED = Type("float64", 4)


@inner
def _sum(counts: Any, columns: Any, column: int) -> float:
    """Layers of each kind times one of their columns."""
    kinds, total = len(counts), 0.0
    for kind in range(kinds):
        total += counts[kind] * columns[column * kinds + kind]
    return total


@inner
def _makespan_s(lead: Any, busy_s: Any, columns: Any, own: Any) -> float:
    """Longest of the paths that go to one device, through all of its work and back: A_s of ``least_makespan``."""
    before_s, longest_s = 0.0, 0.0
    hop_s = (1.0 + own[BACK_WHOLE]) * own[HOP_S]
    for stage in range(len(busy_s)):
        longest_s = max(longest_s, own[MICROBATCHES] * busy_s[stage] + before_s)
        lead_s = _sum(lead[stage], columns, FORWARD_S) + own[BACK_WHOLE] * _sum(lead[stage], columns, BACKWARD_S)
        before_s += lead_s + hop_s
    return longest_s


@inner
def _fits(held: Any, saving: float, again: bool, stage: int, moments: Any, limits: Any) -> bool:
    """Whether a device fits at every moment that holds ``held`` (saved, dense, expert, frozen) and saves so much."""
    stages = len(held)
    size = 2 + 3 * stages
    for at in range(0, len(moments), size):
        flight, fixed, replay = moments[at + 2 + stage], at + 2 + stages + stage, at + 2 + 2 * stages + stage
        left = held[stage, 1] * moments[at] + held[stage, 2] * moments[at + 1] + held[stage, 3]
        left += moments[fixed] + flight * (held[stage, 0] - saving) - limits[LIMIT]
        if again:
            left += moments[replay]
        if left > limits[TOLERANCE]:
            return False
    return True


@inner
def _all_fit(first: Any, member: int, count: int, held: Any, columns: Any, moments: Any, limits: Any) -> bool:  # noqa: PLR0917
    """Whether every device fits with the first ``count`` layers of every chunk relieved."""
    for stage in range(len(held)):
        saving = _sum(first[count, member, stage], columns, SAVING)
        if not _fits(held, saving, count > 0, stage, moments, limits):
            return False
    return True


@inner
def _relieve(  # noqa: PLR0917  (a member, its row, and where the answer goes)
    first: Any,
    member: int,
    longest: int,
    uniform: int,
    held: Any,
    columns: Any,
    own: Any,
    moments: Any,
    limits: Any,
    count: Any,
) -> bool:
    """Fewest relieved layers a chunk on every device, into ``count``; whether they suffice."""
    most = len(first) - 1
    if uniform != 0 and own[FEW] == 0.0:
        count[:] = longest
        return _all_fit(first, member, longest, held, columns, moments, limits)
    every = 0
    for stage in range(len(held)):
        found = -1
        for number in range(most + 1):
            saving = _sum(first[number, member, stage], columns, SAVING)
            if _fits(held, saving, number > 0, stage, moments, limits):
                found = number
                break
        if found < 0:
            return False
        count[stage], every = found, max(every, found)
    if uniform == 0:
        return True
    count[:] = every
    # The second slack may ask for one layer fewer than the exact search: what then fits with one more stays.
    for number in range(every, min(every + 1, most) + 1):
        if _all_fit(first, member, number, held, columns, moments, limits):
            return True
    return False


@inner
def _host_fits(  # noqa: PLR0917  (a member and its row)
    first: Any, member: int, count: Any, held: Any, columns: Any, own: Any, moments: Any, limits: Any
) -> bool:
    """Whether the host holds what is offloaded; ``held`` with the ends' parameters."""
    if own[USES_HOST] == 0.0:
        return True
    for stage in range(len(held)):
        bytes_ = held[stage, 1] * own[HOST_DENSE] + held[stage, 2] * own[HOST_EXPERT]
        if own[MOVED] != 0.0:
            bytes_ += moments[2 + stage] * _sum(first[count[stage], member, stage], columns, SAVING)
        if bytes_ > limits[HOST_LIMIT]:
            return False
    return True


@kernel(INT(COUNTED, MEMBERS, INTS, REAL_ROWS, REAL_ROWS, REALS, INT, INT_ROWS, REAL_ROWS))
def fast_pairs(  # noqa: PLR0917  (a family, its rows, and where the answer goes)
    first: Any,
    lead: Any,
    longest: Any,
    table: Any,
    moments: Any,
    limits: Any,
    uniform: int,
    pairs: Any,
    found: Any,
) -> int:
    """How many pairs fit and may be faster than the cutoff; their row and member, and columns of the answer [Q, 3 + P].

    ``first``, ``lead``, ``longest``: ``FamilyLayers``; ``table`` [R, 10 N + ...]: columns of layers and of the row;
    ``moments`` [R, M (2 + 3 P)]: ``planner.search.line_dealings.moment_columns``.
    """
    most, members, stages, kinds = len(first) - 1, first.shape[1], first.shape[2], first.shape[3]
    busy_s, held, count, number = np.empty(stages), np.empty((stages, 4)), np.empty(stages, np.int64), 0
    for row in range(len(table)):
        columns, own = table[row, : LAYERS * kinds], table[row, LAYERS * kinds :]
        head = int(own[HEAD_STAGE])
        for member in range(members):
            for stage in range(stages):
                busy_s[stage] = _sum(first[most, member, stage], columns, LAYER_S) + own[STAGE_S]
                if own[EVERY] != 0.0:
                    busy_s[stage] += _sum(first[most, member, stage], columns, RELIEF_S)
            busy_s[0] += own[EMBEDDING_S]
            busy_s[head] += own[HEAD_S]
            if not _makespan_s(lead[member], busy_s, columns, own) + own[TAIL_S] < limits[CUTOFF_S]:
                continue
            for stage in range(stages):
                held[stage, 0] = _sum(first[most, member, stage], columns, SAVED)
                held[stage, 1] = _sum(first[most, member, stage], columns, DENSE)
                held[stage, 2] = _sum(first[most, member, stage], columns, EXPERT)
                held[stage, 3] = _sum(first[most, member, stage], columns, FROZEN)
            if not _relieve(first, member, longest[member], uniform, held, columns, own, moments[row], limits, count):
                continue
            held[0, 1] += own[EMBEDDING_DENSE]
            held[head, 1] += own[HEAD_DENSE]
            held[head, 2] += own[HEAD_EXPERT]
            if not _host_fits(first, member, count, held, columns, own, moments[row], limits):
                continue
            for stage in range(stages):
                relieved_s = _sum(first[count[stage], member, stage], columns, RELIEF_S)
                if own[EVERY] == 0.0:
                    busy_s[stage] += relieved_s
                found[number, RELIEVED_S + stage] = relieved_s
            makespan_s = _makespan_s(lead[member], busy_s, columns, own)
            if makespan_s + own[TAIL_S] < limits[CUTOFF_S]:
                found[number, MAKESPAN_S] = makespan_s
                found[number, FULLEST_DENSE], found[number, FULLEST_EXPERT] = held[0, 1], held[0, 2]
                for stage in range(1, stages):
                    found[number, FULLEST_DENSE] = max(found[number, FULLEST_DENSE], held[stage, 1])
                    found[number, FULLEST_EXPERT] = max(found[number, FULLEST_EXPERT], held[stage, 2])
                pairs[number, 0], pairs[number, 1] = row, member
                number += 1
    return number


@kernel(NOTHING(MEMBERS, REAL_ROWS, REAL_ROWS, REAL_ROWS, INT_ROWS, REAL_ROWS))
def at_least_paths(layers: Any, ends: Any, least: Any, table: Any, pairs: Any, found: Any) -> None:
    """Raise the makespan of each pair to the longest of the known paths: ``FamilyPaths``."""
    kinds = layers.shape[2] // 3
    for pair in range(len(pairs)):
        row, member = pairs[pair, 0], pairs[pair, 1]
        columns, own = table[row, : LAYERS * kinds], table[row, LAYERS * kinds :]
        longest_s = found[pair, MAKESPAN_S]
        for path in range(len(ends)):
            length_s = 0.0
            for end in range(ends.shape[1]):
                length_s += own[ENDS + end] * ends[path, end]
            for kind in range(kinds):
                backward_s = columns[BACKWARD_S * kinds + kind]
                if own[EVERY] != 0.0:
                    backward_s += columns[RELIEF_S * kinds + kind]
                length_s += columns[FORWARD_S * kinds + kind] * layers[member, path, kind]
                length_s += backward_s * layers[member, path, kinds + kind]
                length_s += columns[GRADIENT_S * kinds + kind] * layers[member, path, 2 * kinds + kind]
            if own[EVERY] == 0.0:
                for stage in range(least.shape[1]):
                    length_s += found[pair, RELIEVED_S + stage] * least[path, stage]
            longest_s = max(longest_s, length_s)
        found[pair, MAKESPAN_S] = longest_s
