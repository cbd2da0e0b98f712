"""Which back-ends keep attention within packed documents: one rule for each space, with its own source."""

from __future__ import annotations

from collections.abc import Callable, Collection

from planner.backends.rules.rule import RuleInput, SpaceRule
from planner.question.sequences import Packing

GREEDY: tuple[Packing, ...] = ("greedy",)
CONCATENATED: tuple[Packing, ...] = ("concatenated",)
BOTH: tuple[Packing, ...] = ("greedy", "concatenated")


def packed_sequences(source: str, *, packings: Collection[Packing] = (), instead: str = "") -> SpaceRule:
    """The rule (id ``K2``) of a back-end that fills sequences in these ways; padded ones run everywhere.

    ``instead``: what to do about it.
    """
    hint = f"; {instead}" if instead else ""

    def check(given: RuleInput) -> str | None:
        said = given.workload.sequences
        packing = None if said is None else said.packed_by
        if packing is None or packing in packings:
            return None
        if not packings:
            return f"it packs no documents with attention within each{hint or '; use padded sequences'}"
        return f"it has no {packing} packing, only {' and '.join(packings)}{hint}"

    return SpaceRule("K2", source, check)


def packed_context(source: str, check: Callable[[RuleInput], str | None]) -> SpaceRule:
    """The rule (id ``K3``) about context parallelism beside packed documents; ``check`` is asked where both are."""

    def where_packed(given: RuleInput) -> str | None:
        said = given.workload.sequences
        return None if said is None or said.kind == "padded" or given.strategy.cp == 1 else check(given)

    return SpaceRule("K3", source, where_packed, ("cp",))
