"""The sizes that must divide over degrees: checks that several back-ends make in the same words.

A back-end whose software asks a little differently keeps a function of its own.  Names of these functions are the words
of the reference pages.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.backends.rules.rule import RuleInput, mixtures, used_kinds


def exact_batch(batch: str = "global batch", steps: str = "micro-batches") -> Callable[[RuleInput], str | None]:
    """The rule that the batch is exactly micro-batch x number of them x dp, in a back-end's words for both."""

    def check(given: RuleInput) -> str | None:
        s, samples = given.strategy, given.workload.global_batch_size
        if samples == s.global_batch_size:
            return None
        return f"{batch} {samples} is not micro-batch {s.micro_batch_size} x {s.num_microbatches} {steps} x dp {s.dp}"

    check.__name__ = "batch"
    return check


def heads(given: RuleInput) -> str | None:
    """Do all heads, key-value heads too, divide over tp?"""
    tp = given.strategy.tp
    for kind in used_kinds(given.model):
        for count, name in ((kind.attention.num_heads, "attention"), (kind.attention.num_kv_heads, "key-value")):
            if count % tp:
                return f"{count} {name} heads do not divide over tp={tp}"
    return None


def sequence_parallel(given: RuleInput) -> str | None:
    """Has sequence parallelism a tensor axis to split over?"""
    return "sp needs tp > 1" if given.strategy.sp and given.strategy.tp == 1 else None


def context_kind(given: RuleInput) -> str | None:
    """Is a kind of context parallelism named when, and only when, cp > 1?"""
    s = given.strategy
    if (s.cp > 1) == (s.cp_kind != "none"):
        return None
    return f"cp={s.cp} and cp_kind={s.cp_kind} contradict each other"


def context_parallel_sequence(given: RuleInput) -> str | None:
    """Does the sequence divide into two pieces a cp rank, one from its head and one from its tail?"""
    s, tokens = given.strategy, given.workload.sequence_length
    if s.cp > 1 and tokens % (2 * s.cp):
        return f"sequence length {tokens} must be a multiple of 2 x cp = {2 * s.cp}"
    return None


def positions(given: RuleInput) -> str | None:
    """Has the table of learned positions a row for every token of a sample?"""
    rows, tokens = given.model.learned_positions, given.workload.sequence_length
    if rows and rows < tokens:
        return f"the position table has {rows} rows, fewer than the {tokens} tokens of a sample"
    return None


def experts_divide(given: RuleInput) -> str | None:
    """Are there experts to split over ep, and do they divide over it in every mixture?"""
    s, moes = given.strategy, mixtures(given.model)
    if s.ep > 1 and not moes:
        return f"ep={s.ep} needs a model with experts"
    for moe in moes:
        if moe.num_experts % s.ep:
            return f"{moe.num_experts} experts do not divide over ep={s.ep}"
    return None


def experts_need_sequence_parallel(given: RuleInput) -> str | None:
    """Are tokens split over tp before they are routed?"""
    s = given.strategy
    return "experts with tp > 1 train only with sp" if mixtures(given.model) and s.tp > 1 and not s.sp else None
