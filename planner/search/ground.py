"""What a search knows of a space before it looks for anything, and what a process keeps of it between questions.

The cores of a back-end's space, their costs, their bounds and the number of strategies under each hang on the model,
the cluster, the workload and the constraints alone: not on the objective, nor on how long or for how many plans is
searched.  A service that is asked the same in another way need not work them out again.
"""

from __future__ import annotations

from collections import Counter
from copy import copy
from functools import cached_property
from threading import Lock

from planner.predict.cost.hardware import Hardware
from planner.predict.cost.row_cost import CostModel
from planner.question.problem import Objective, Problem
from planner.search.core_waves import CoreWaves
from planner.search.space import Space
from planner.search.split_limits import memory_limit_bytes
from planner.strategy.rows import StrategyRows
from solver.arrays import Ints

MOST_KEPT = 24
"""Grounds that are kept: three questions to all back-ends."""
MOST_CORES = 4_096
"""Cores of the largest space that is kept, 1 KiB each with costs and bounds: all of them are below 100 MiB."""


class Ground:
    """The space of a question to one back-end and the costs of its cores; a search changes none of it."""

    def __init__(self, problem: Problem, hardware: Hardware) -> None:
        self._space = Space(problem, hardware.num_devices)
        self._limit_bytes = memory_limit_bytes(problem, hardware)
        self.costs = CostModel(problem.model, problem.workload, hardware, self._space.reliefs)

    @property
    def cores(self) -> StrategyRows:
        """Every legal core."""
        return self._space.cores

    def space(self) -> Space:
        """The space with counts of its own: those of its cores so far."""
        own = copy(self._space)
        own.cores = self.cores
        own.pruned, own.illegal = Counter(self._space.pruned), Counter()
        return own

    @cached_property
    def waves(self) -> CoreWaves:
        """All cores with their costs and bounds."""
        return CoreWaves(self.costs, self.cores, self._limit_bytes)

    @cached_property
    def leaf_counts(self) -> Ints:
        """Complete strategies under each core."""
        return self._space.leaf_counts(self.cores)


class Grounds:
    """The grounds of the last ``MOST_KEPT`` questions that a process was asked, for several threads."""

    def __init__(self) -> None:
        self._kept: dict[str, Ground] = {}
        self._lock = Lock()

    def of(self, problem: Problem, hardware: Hardware) -> Ground:
        """The ground of a question that names one back-end; ``hardware``: its cluster, run by that back-end."""
        key = problem.model_copy(update={"objective": Objective()}).content_hash()
        with self._lock:
            ground = self._kept.pop(key, None)
        if ground is None:
            ground = Ground(problem, hardware)
        if len(ground.cores) <= MOST_CORES:
            with self._lock:
                self._kept[key] = ground
                for oldest in [*self._kept][:-MOST_KEPT]:
                    del self._kept[oldest]
        return ground
