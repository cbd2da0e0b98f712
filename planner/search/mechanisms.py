"""How simple and usual a strategy is: what a person has to switch on, counted, and a common shape.

A *mechanism* is a part of a strategy that somebody switches on, tunes and repairs when it fails; ``MECHANISMS`` lists
them with the reason why each is one.  Degrees of tp, pp, dp and ep, ZeRO and the interleaved schedule are none: nearly
every published large run has them.  A *common shape* is what published tuned runs have (Llama-3 405B, BLOOM 176B,
MT-NLG 530B, DeepSeek-V3, NVIDIA's performance recipes): tp within a node, powers of two, stages that divide the
layers, recompute of every layer or of none.

Both are said of columns of strategies, so that a search can leave out what is not wanted before it bounds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from planner.predict.candidate import Candidate
from planner.strategy.rows import StrategyRows, relief_of, scheduled_as
from planner.strategy.schedules import SCHEDULE_NAMES
from planner.strategy.strategy import Relief, Strategy
from solver.arrays import Ints, Mask

Reliefs = Sequence[Relief]

USUAL_SCHEDULES = ("1f1b", "interleaved")


@dataclass(frozen=True, slots=True)
class Mechanism:
    """``words`` as a person reads them; ``why`` it is one; ``on``: which rows have it."""

    words: str
    why: str
    on: Callable[[StrategyRows, Reliefs], Mask]


def _relief(rows: StrategyRows, reliefs: Reliefs, has: Callable[[Relief], bool]) -> Mask:
    return np.array([has(each) for each in reliefs], dtype=np.bool_)[rows.relief]


MECHANISMS = (
    Mechanism(
        "optimizer offload",
        "the step waits for host memory, its bandwidth and its processors, which no profile of the devices measures",
        lambda rows, _: rows.optimizer_offload > 0,
    ),
    Mechanism(
        "activation offload",
        "activations travel over the host link in every micro-batch, and host memory must hold them",
        lambda rows, reliefs: _relief(rows, reliefs, lambda each: each.offload),
    ),
    Mechanism(
        "recompute",
        "a policy and a number of layers are chosen, and chosen again when model, sequence or batch change",
        lambda rows, reliefs: _relief(rows, reliefs, lambda each: each.recompute != "none"),
    ),
    Mechanism(
        "context parallelism",
        "attention kernels, data loading and loss must all know how the sequence is cut",
        lambda rows, _: rows.cp > 1,
    ),
    Mechanism(
        "expert tensor parallelism",
        "experts get a grid of ranks of their own, which checkpoints and gradient norms must know",
        lambda rows, _: rows.etp > 1,
    ),
    Mechanism(
        "hybrid sharding",
        "replicas of sharded groups add a process group and a second collective of the gradients",
        lambda rows, _: (rows.dp_replicate > 1) & (rows.zero > 0),
    ),
    Mechanism(
        "an unusual schedule",
        "schedules other than 1F1B and its interleaved form are young in every back-end that has them",
        lambda rows, _: (rows.pp > 1) & ~scheduled_as(rows, USUAL_SCHEDULES),
    ),
    Mechanism(
        "an unusual order of axes",
        "ranks lie otherwise than launch scripts, checkpoints and monitoring take for granted",
        lambda rows, _: rows.pp_inner > 0,
    ),
)
UNEVEN = Mechanism(
    "uneven layers",
    "stages or their chunks hold unequal numbers of layers, which is written out by hand and changes with pp",
    lambda rows, _: np.zeros(len(rows), dtype=np.bool_),
)
"""Of a dealing rather than of a strategy: ``mechanisms_of`` and ``Plain`` look at the layers."""


def uneven_rows(rows: StrategyRows, num_layers: int) -> Mask:
    """Rows whose chunks cannot hold equally many layers."""
    return np.asarray(num_layers % (rows.pp * rows.vpp) != 0)


def number_of_mechanisms(rows: StrategyRows, reliefs: Reliefs, num_layers: int) -> Ints:
    """Mechanisms of each row: [R]; unequal layers count where nothing else is possible."""
    count = uneven_rows(rows, num_layers).astype(np.int64)
    for each in MECHANISMS:
        count += each.on(rows, reliefs)
    return count


def mechanisms_of(strategy: Strategy, chunk_layers: Sequence[int]) -> tuple[str, ...]:
    """What has to be switched on for a strategy with so many layers on each chunk, in words."""
    reliefs = tuple(dict.fromkeys([Relief(), relief_of(strategy)]))
    row = StrategyRows.of([strategy], reliefs)
    words = [each.words for each in MECHANISMS if each.on(row, reliefs)[0]]
    return (*words, *([UNEVEN.words] if len(set(chunk_layers)) > 1 else ()))


def common_rows(rows: StrategyRows, num_layers: int, devices_per_node: int) -> Mask:
    """Rows of a common shape.

    tp is a power of two and within a node; cp, ep and the micro-batch are powers of two, and pp is one or divides the
    layers.
    """
    powers = [getattr(rows, name) for name in ("tp", "cp", "ep", "micro_batch_size")]
    common = (rows.tp <= devices_per_node) & (_power_of_two(rows.pp) | (num_layers % rows.pp == 0))
    for column in powers:
        common &= _power_of_two(column)
    return np.asarray(common)


def is_common(strategy: Strategy, num_layers: int, devices_per_node: int) -> bool:
    """Whether one strategy has a common shape."""
    reliefs = tuple(dict.fromkeys([Relief(), relief_of(strategy)]))
    return bool(common_rows(StrategyRows.of([strategy], reliefs), num_layers, devices_per_node)[0])


def has_common_shape(candidate: Candidate, num_layers: int, devices_per_node: int) -> bool:
    """The same of a candidate, whose layers use its memory relief all or not at all."""
    counts, relieved = candidate.split.chunk_layers, candidate.split.relieved
    stages = map(candidate.strategy.chunk_stage, range(len(counts)))
    every = all(min(count, relieved[stage]) == count for count, stage in zip(counts, stages, strict=True))
    return (every or not any(relieved)) and is_common(candidate.strategy, num_layers, devices_per_node)


def _power_of_two(column: Ints) -> Mask:
    return np.asarray((column & (column - 1)) == 0)


class Part(Protocol):
    """A part of a space that is searched alone."""

    def keeps(self, rows: StrategyRows) -> Mask:
        """Rows of this part, or under which it is."""

    def may_keep(self, rows: StrategyRows) -> Mask:
        """Rows that are of this part under some schedule and with some number of chunks."""

    def parts(self, rows: StrategyRows, at: Ints, reliefs: list[int]) -> list[tuple[Ints, list[int]]]:
        """Which of the ``rows`` at places ``at`` are in it under which reliefs."""

    def may_be_uneven(self, row: StrategyRows) -> bool:
        """Whether the layers of a row may be dealt unequally."""


@dataclass(frozen=True, slots=True)
class Plain:
    """The part of a space with at most ``most`` mechanisms; ``common``: of a common shape too."""

    most: int
    common: bool
    reliefs: Reliefs
    num_layers: int
    devices_per_node: int

    def keeps(self, rows: StrategyRows) -> Mask:
        """Rows of this part.

        What a row has not chosen yet is off or one in it, so a core or layout is kept where anything under it can be.
        """
        kept = number_of_mechanisms(rows, self.reliefs, self.num_layers) <= self.most
        return kept & common_rows(rows, self.num_layers, self.devices_per_node) if self.common else kept

    def may_keep(self, rows: StrategyRows) -> Mask:
        """Rows that are of this part under the usual schedule, with one chunk a device: others may have more."""
        usual = np.full(len(rows), SCHEDULE_NAMES.index(USUAL_SCHEDULES[0]))
        return self.keeps(replace(rows, schedule=usual, vpp=np.ones_like(rows.vpp)))

    def parts(self, rows: StrategyRows, at: Ints, reliefs: list[int]) -> list[tuple[Ints, list[int]]]:
        """Which of the ``rows`` at places ``at``, none of them relieved, are kept under which reliefs.

        Every relief is one mechanism, so that rows without room for one more are bounded without relief alone.
        """
        room = self.most - number_of_mechanisms(rows, self.reliefs, self.num_layers)
        none = [code for code in reliefs if self.reliefs[code] == Relief()]
        return [(at[room > 0], reliefs), (at[room == 0], none)]

    def may_be_uneven(self, row: StrategyRows) -> bool:
        """Whether its layers may be dealt unequally: nothing else is possible, or one more mechanism is allowed."""
        unequal = bool(uneven_rows(row, self.num_layers)[0])
        return unequal or bool(number_of_mechanisms(row, self.reliefs, self.num_layers)[0] < self.most)
