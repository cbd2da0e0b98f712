"""The chunks and micro-batches that torch's pipeline schedules take, and where each chunk belongs.

What the back-ends on ``torch.distributed.pipelining`` have in common.  Names of the rules are the words of the
reference pages.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.backends.emission.layout import StageLayout, chunks_in_model_order
from planner.backends.rules.rule import RuleInput
from planner.plan.plan import ChunkPlan
from planner.strategy.schedules import LOOPED_SCHEDULES, V_SCHEDULES


def interleaved_group_size(pp: int, num_microbatches: int) -> int:
    """Micro-batches that torch's two interleaved schedules run on one chunk before the next.

    torch 2.13.0 distributed/pipelining/schedules.py:2935-2936 (Interleaved1F1B), 3046-3047 (InterleavedZeroBubble).
    """
    return num_microbatches // max(1, num_microbatches // pp)


def chunks_a_rank(given: RuleInput) -> str | None:
    """Has every rank as many chunks as the schedule wants?"""
    s = given.strategy
    if s.pp == 1:
        return f"vpp={s.vpp} needs pp > 1" if s.vpp > 1 else None
    if s.schedule in V_SCHEDULES:
        return f"{s.schedule} needs exactly 2 chunks a rank, not {s.vpp}" if s.vpp != 2 else None
    if s.schedule in LOOPED_SCHEDULES:
        return f"{s.schedule} needs vpp > 1" if s.vpp == 1 else None
    return f"{s.schedule} runs one chunk a rank, not {s.vpp}" if s.vpp > 1 else None


def microbatches(given: RuleInput) -> str | None:
    """Are there enough micro-batches to fill the pipeline?"""
    s = given.strategy
    needed = {"1f1b": s.pp, "dualpipev": 2 * s.pp}.get(s.schedule, 1)
    if s.pp == 1 or s.num_microbatches >= needed:
        return None
    return f"{s.schedule} needs at least {needed} micro-batches, not {s.num_microbatches}; gpipe takes fewer"


def uneven_rounds(given: RuleInput) -> str | None:
    """Do the micro-batches of a grouped or zero-bubble schedule with pp > 1 divide into its rounds?"""
    s = given.strategy
    rounds = max(1, s.num_microbatches // s.pp)
    if s.num_microbatches % rounds:
        return f"{s.schedule} needs a multiple of {rounds} micro-batches, not {s.num_microbatches}"
    return None


def empty_chunk(given: RuleInput) -> str | None:
    """Has every chunk between the first and the last a layer?"""
    inner = (given.layers_per_chunk or ())[1:-1]
    return f"chunk {inner.index(0) + 1} holds nothing to compute" if 0 in inner else None


def placement_problem(
    given: RuleInput,
    *,
    of_stage: Callable[[int, StageLayout], str | None] = lambda _rank, _stage: None,
    of_chunk: Callable[[ChunkPlan, int], str | None] = lambda _chunk, _num_chunks: None,
) -> str | None:
    """Are all chunks there once, on the ranks where the schedule runs them, and do they hold all layers in order?

    ``of_stage`` and ``of_chunk`` are what a back-end also asks of every stage (with its rank) and of every chunk (with
    the number of chunks).
    """
    if given.layout is None:
        return None
    s, num_layers = given.strategy, given.model.num_layers
    chunks = chunks_in_model_order(given.layout)
    if [chunk.chunk for chunk in chunks] != list(range(s.num_chunks)) or len(given.layout) != s.pp:
        return f"the stages must hold the {s.num_chunks} chunks of pp x vpp once each"
    for rank, stage in enumerate(given.layout):
        if any(s.chunk_stage(chunk.chunk) != rank for chunk in stage.chunks):
            return f"{s.schedule} does not run chunks {[chunk.chunk for chunk in stage.chunks]} on rank {rank}"
        problem = of_stage(rank, stage)
        if problem is not None:
            return problem
    expected = 0
    for chunk in chunks:
        if chunk.first_layer != expected:
            return f"chunk {chunk.chunk} starts at layer {chunk.first_layer}, the one before it ends at {expected}"
        problem = of_chunk(chunk, len(chunks))
        if problem is not None:
            return problem
        expected += chunk.num_layers
    return None if expected == num_layers else f"the chunks hold {expected} of {num_layers} layers"


def end_problem(chunk: ChunkPlan, num_chunks: int) -> str | None:
    """Has the first chunk the embedding, the last one the head, and no other either?"""
    if chunk.has_embedding != (chunk.chunk == 0) or chunk.has_head != (chunk.chunk == num_chunks - 1):
        return "the embedding must be on the first chunk and the head on the last"
    return None
