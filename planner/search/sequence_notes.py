"""What a plan assumes about the documents in its sequences, with balanced packing beside it."""

from __future__ import annotations

import numpy as np

from planner.predict.candidate import Candidate
from planner.predict.cost.hardware import Hardware
from planner.predict.cost.uneven_rows import sharded_attention, uneven_attention
from planner.predict.packed_rows import PackedRows, documents_of
from planner.question.problem import Problem
from planner.question.sequences import Sequences
from planner.search.evaluate import evaluate_split
from planner.search.row_context import strategy_context
from planner.strategy.rows import StrategyRows, relief_of

PACKED = {
    "concatenated": "run on from one sequence into the next",
    "greedy": "packed whole, the longest first, where they fit best",
    "balanced": "packed whole into the sequence with the least attention work",
}


def sequence_notes(problem: Problem, hardware: Hardware, candidate: Candidate) -> tuple[str, ...]:
    """Nothing where each sequence is one document of its whole length."""
    said = problem.workload.sequences
    if said is None:
        return ()
    found = documents_of(said, problem.workload.sequence_length)
    cut = f", {found.cut_fraction:.1%} of their tokens are cut off" if found.cut_fraction >= 0.0005 else ""
    real = f"{found.real_fraction:.1%} of the tokens are real; rates and useful FLOPs count these"
    if said.packed_by is None:
        return (f"sequences are {said.words()}{cut}, padded to their whole length: {real}",)
    notes = [
        f"sequences are {said.words()}{cut}, {PACKED[said.packed_by]}: {real}; a token attends to"
        f" {found.context(None, causal=True):,.0f} tokens of its document"
    ]
    if hardware.physics.attention == "unfused":
        return (*notes, "attention without fused kernels computes all pairs of a sequence, whatever the documents")
    notes.append(_waiting_note(problem, hardware, candidate, found, said))
    if candidate.strategy.cp > 1:
        notes.append("context-parallel ranks share the attention of every document evenly")
    return tuple(notes)


def _waiting_note(
    problem: Problem, hardware: Hardware, candidate: Candidate, found: PackedRows, said: Sequences
) -> str:
    """How much the slowest has to do, and the same plan with balanced packing."""
    rows = StrategyRows.of([candidate.strategy], (relief_of(candidate.strategy),))
    factor = (1.0 + uneven_attention(rows, found, problem.workload)) * sharded_attention(rows, found, problem.workload)
    note = f"ranks and stages wait for the one with the most attention, {float(np.ravel(factor)[0]):.2f} times the mean"
    if said.packed_by == "balanced":
        return note
    balanced = said.model_copy(update={"packing": "balanced"})
    workload = problem.workload.model_copy(update={"sequences": balanced})
    context = strategy_context(problem.model_copy(update={"workload": workload}), hardware, candidate.strategy)
    other_s = evaluate_split(context, candidate.split).step_time_s
    return f"{note}; with balanced packing this plan would take {other_s:.4g} s a step"
