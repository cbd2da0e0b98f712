"""The actions of every rank, in their order: all eight schedules, compiled.

A ``Script`` is written rank after rank.  It numbers micro-batches by itself: each (kind, chunk) takes micro-batches 0,
1, 2, ... in turn, which is what every schedule here does; those from ``most`` on are left out.  An input gradient puts
its weight gradient on a queue, from which ``_weight_gradients`` takes the oldest ones.  Names: r rank, p stages, v
chunks a rank, m micro-batches, g micro-batches a group.
"""

from __future__ import annotations

from typing import NamedTuple

from planner.predict.schedule.action import BACKWARD, FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT
from solver.arrays import Ints
from solver.selection.kernel import INT, INT_ROWS, INTS, NOTHING, inner, kernel, record

GPIPE, ONE_F_ONE_B, INTERLEAVED, ZB_H1, ZBV, DUALPIPEV, LOOPED_BFS, INTERLEAVED_ZB = range(8)


class Script(NamedTuple):
    """Actions as they are written: kinds, chunks and micro-batches, and what the writing needs.

    ``state``: actions written, first and end of the queue, ``most``.  ``queue`` [places, 2]: chunk and micro-batch of a
    waiting weight gradient; chunk -1 where it was taken out of turn.  ``counts`` [2, chunks]: forwards and backwards
    so far.
    """

    kind: Ints
    chunk: Ints
    microbatch: Ints
    state: Ints
    queue: Ints
    counts: Ints


SCRIPT = record(Script, INTS, INTS, INTS, INTS, INT_ROWS, INT_ROWS)


@inner
def _write(script: Script, kind: int, chunk: int, microbatch: int) -> None:
    if microbatch < script.state[3]:
        place = script.state[0]
        script.kind[place], script.chunk[place], script.microbatch[place] = kind, chunk, microbatch
        script.state[0] = place + 1


@inner
def _forward(script: Script, chunk: int) -> None:
    _write(script, FORWARD, chunk, script.counts[0, chunk])
    script.counts[0, chunk] += 1


@inner
def _backward(script: Script, chunk: int) -> None:
    _write(script, BACKWARD, chunk, script.counts[1, chunk])
    script.counts[1, chunk] += 1


@inner
def _input_gradient(script: Script, chunk: int) -> None:
    microbatch, place = script.counts[1, chunk], script.state[2]
    _write(script, INPUT_GRADIENT, chunk, microbatch)
    script.counts[1, chunk] = microbatch + 1
    script.queue[place, 0], script.queue[place, 1] = chunk, microbatch
    script.state[2] = place + 1


@inner
def _weight_gradients(script: Script, count: int) -> None:
    """The ``count`` oldest waiting weight gradients, or all where fewer wait."""
    while count > 0 and script.state[1] < script.state[2]:
        place = script.state[1]
        script.state[1] = place + 1
        if script.queue[place, 0] >= 0:
            _write(script, WEIGHT_GRADIENT, script.queue[place, 0], script.queue[place, 1])
            count -= 1


@inner
def _weight_gradients_of(script: Script, chunk: int, count: int) -> None:
    """The ``count`` oldest waiting weight gradients of one chunk."""
    for place in range(script.state[1], script.state[2]):
        if count <= 0:
            break
        if script.queue[place, 0] == chunk:
            _write(script, WEIGHT_GRADIENT, chunk, script.queue[place, 1])
            script.queue[place, 0] = -1
            count -= 1


@inner
def _visit(step: int, vpp: int, microbatches: int, group: int) -> int:
    """Local chunk of the ``step``-th forward of a rank whose micro-batches go in groups; the last group may be short.

    A group runs through the first chunk, then the second, ...  Backwards take the chunks from the last to the first.
    """
    number = step // (vpp * group)
    members = min(group, microbatches - number * group)
    return (step - number * vpp * group) // members


@inner
def _gpipe(script: Script, rank: int, microbatches: int) -> None:
    """GPipe: all forwards, then all backwards (arXiv 1811.06965)."""
    for _ in range(microbatches):
        _forward(script, rank)
    for _ in range(microbatches):
        _backward(script, rank)


@inner
def _one_f_one_b(script: Script, rank: int, stages: int, microbatches: int) -> None:
    """1F1B: as few forwards as reach the last rank, then one forward, one backward (arXiv 2104.04473 section 2.2).

    Rank r warms up with p-1-r forwards, so it holds at most min(m, p-r) activations.
    """
    warmup = min(stages - 1 - rank, microbatches)
    for _ in range(warmup):
        _forward(script, rank)
    for step in range(microbatches):
        if step < microbatches - warmup:
            _forward(script, rank)
        _backward(script, rank)


@inner
def _interleaved(script: Script, rank: int, stages: int, vpp: int, microbatches: int, group: int) -> None:
    """Interleaved 1F1B: every rank holds chunks r, r+p, ...; micro-batches go in groups of g.

    Rank r warms up with 2(p-1-r) + (v-1)g forwards, then alternates forward and backward.
    Source: arXiv 2104.04473 section 2.2; groups: Megatron-LM ``--microbatch-group-size-per-virtual-pipeline-stage``.
    """
    steps = microbatches * vpp
    warmup = min(2 * (stages - 1 - rank) + (vpp - 1) * group, steps)
    for step in range(warmup):
        _forward(script, rank + _visit(step, vpp, microbatches, group) * stages)
    for step in range(steps):
        if step < steps - warmup:
            _forward(script, rank + _visit(warmup + step, vpp, microbatches, group) * stages)
        _backward(script, rank + (vpp - 1 - _visit(step, vpp, microbatches, group)) * stages)


@inner
def _zbv(script: Script, rank: int, stages: int, microbatches: int) -> None:
    """ZB-V: chunks r (going down) and 2p-1-r (coming back up), no bubble when F = I = W.

    1. 2(p-r)-1 forwards of the down chunk;
    2. r times: forward up, forward down;
    3. p-r times: forward, input and weight gradient of the up chunk;
    4. while forwards are left: forward, input and weight gradient of the down chunk, then the same of the up chunk;
    5. r times: input gradient down, input gradient up (weight gradients kept back);
    6. p-r times: input gradient of the down chunk and its oldest weight gradient;
    7. what was kept back, up chunk first.

    The pattern needs 2p-1 micro-batches; fewer are the same order with the missing ones left out.
    Source: arXiv 2401.10241 section 6 and its order as in torch ``ScheduleZBVZeroBubble``.
    """
    down, up, pattern = rank, 2 * stages - 1 - rank, max(microbatches, 2 * stages - 1)
    for _ in range(2 * (stages - rank) - 1):
        _forward(script, down)
    for _ in range(rank):
        _forward(script, up)
        _forward(script, down)
    for _ in range(stages - rank):
        _forward(script, up)
        _input_gradient(script, up)
        _weight_gradients(script, 1)
    for step in range(pattern - stages):
        if step < pattern - 2 * stages + rank + 1:
            _forward(script, down)
        _input_gradient(script, down)
        _weight_gradients(script, 1)
        _forward(script, up)
        _input_gradient(script, up)
        _weight_gradients(script, 1)
    for _ in range(rank):
        _input_gradient(script, down)
        _input_gradient(script, up)
    for _ in range(stages - rank):
        _input_gradient(script, down)
        _weight_gradients_of(script, down, 1)
    _weight_gradients_of(script, up, pattern)
    _weight_gradients_of(script, down, pattern)


@inner
def _pair(script: Script, forward_chunk: int, backward_chunk: int) -> None:
    _forward(script, forward_chunk)
    _backward(script, backward_chunk)


@inner
def _dualpipev(script: Script, rank: int, stages: int, microbatches: int) -> None:
    """DualPipeV: two chunks in a V; a forward of one runs beside a backward of the other.  Needs m >= 2p.

    F forward, B full backward, I and W its two halves:

    1. 2(p-r-1) F down;                       2. r+1 times F down, F up;
    3. p-r-1 times I up, W, F up;             4. m-2p+r+1 times (F down, B up), (F up, B down);
    5. p-r-1 times B up, (F up, B down);      6. r+1 times B up, B down, the second half of them as I (W kept back);
    7. p-r-1 times W, I down;                 8. r+1 times W.

    Pairs in brackets are meant to run at once (expert all-to-all of one under the compute of the other); the order
    lists them one after the other, forward first.  A caller that models the overlap shortens the durations.
    Source: DeepSeek DualPipe repository (README, DualPipeV), arXiv 2412.19437 section 3.2.1; the order is that of torch
    ``ScheduleDualPipeV``, whose OVERLAP_F_B is such a pair.
    """
    down, up, after = rank, 2 * stages - 1 - rank, stages - 1 - rank
    for _ in range(2 * after):
        _forward(script, down)
    for _ in range(rank + 1):
        _forward(script, down)
        _forward(script, up)
    for _ in range(after):
        _input_gradient(script, up)
        _weight_gradients(script, 1)
        _forward(script, up)
    for _ in range(microbatches - 2 * stages + rank + 1):
        _pair(script, down, up)
        _pair(script, up, down)
    for _ in range(after):
        _backward(script, up)
        _pair(script, up, down)
    for turn in range(2 * (rank + 1)):
        chunk = down if turn % 2 else up
        if turn > rank:
            _input_gradient(script, chunk)
        else:
            _backward(script, chunk)
    for _ in range(after):
        _weight_gradients(script, 1)
        _input_gradient(script, down)
    _weight_gradients(script, rank + 1)


@inner
def _looped_bfs(script: Script, rank: int, stages: int, vpp: int, microbatches: int) -> None:
    """Looped BFS: the forwards of all micro-batches chunk by chunk, then the backwards the other way round.

    Every rank holds chunks r, r+p, ..., like interleaved 1F1B.  It keeps every activation, as GPipe does, and gathers
    or reduces each chunk's parameters once a step.  Backwards go from the last micro-batch to the first.
    Source: arXiv 2211.05953 section 4; the order of backwards is that of torch ``ScheduleLoopedBFS``.
    """
    for local in range(vpp):
        for _ in range(microbatches):
            _forward(script, rank + local * stages)
    for local in range(vpp - 1, -1, -1):
        for microbatch in range(microbatches - 1, -1, -1):
            _write(script, BACKWARD, rank + local * stages, microbatch)


@inner
def _interleaved_zb(script: Script, rank: int, stages: int, vpp: int, microbatches: int, group: int) -> None:
    """Interleaved zero bubble: ZB-H1 over several chunks a rank; with one chunk a rank it is ZB-H1 (torch: ZB1P).

    Forwards and input gradients visit chunks and groups as interleaved 1F1B does, but rank r warms up with p-1-r
    forwards beyond the (v-1)g of the last rank, one a hop instead of two, because an input gradient alone comes back
    sooner; it keeps r weight gradients back and fills the end of the step with them.  With one chunk a rank every rank
    holds min(m, p) activations, as many as rank 0 of 1F1B does.
    Source: arXiv 2401.10241 section 2.3; the order is that of torch ``ScheduleInterleavedZeroBubble``.
    """
    steps = microbatches * vpp
    warmup = min((vpp - 1) * group + stages - 1 - rank, steps)
    for step in range(warmup):
        _forward(script, rank + _visit(step, vpp, microbatches, group) * stages)
    for step in range(steps):
        if step < steps - warmup:
            _forward(script, rank + _visit(warmup + step, vpp, microbatches, group) * stages)
        _input_gradient(script, rank + (vpp - 1 - _visit(step, vpp, microbatches, group)) * stages)
        if step >= rank:
            _weight_gradients(script, 1)
    _weight_gradients(script, steps)


@kernel(NOTHING(SCRIPT, INTS, INT, INT, INT, INT, INT))
def write_order(  # noqa: PLR0917  (what an order depends on)
    script: Script, offsets: Ints, schedule: int, stages: int, vpp: int, microbatches: int, group: int
) -> None:
    """Write all ranks of a legal schedule; ``offsets`` [p + 1]: where each rank begins."""
    for rank in range(stages):
        script.state[1] = script.state[2] = 0
        if schedule == GPIPE:
            _gpipe(script, rank, microbatches)
        elif schedule == ONE_F_ONE_B:
            _one_f_one_b(script, rank, stages, microbatches)
        elif schedule == INTERLEAVED:
            _interleaved(script, rank, stages, vpp, microbatches, group)
        elif schedule == ZB_H1:
            _interleaved_zb(script, rank, stages, 1, microbatches, stages)
        elif schedule == ZBV:
            _zbv(script, rank, stages, microbatches)
        elif schedule == DUALPIPEV:
            _dualpipev(script, rank, stages, microbatches)
        elif schedule == LOOPED_BFS:
            _looped_bfs(script, rank, stages, vpp, microbatches)
        else:
            _interleaved_zb(script, rank, stages, vpp, microbatches, group)
        offsets[rank + 1] = script.state[0]
