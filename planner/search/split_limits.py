"""The limits of every dealing of layers: the room in memory, and what the back-end's software can do."""

from __future__ import annotations

from planner.backends.asked import the_software
from planner.predict.cost.hardware import Hardware
from planner.predict.memory.fit_chance import usable_bytes
from planner.question.problem import Problem
from planner.search.split_terms import SplitRules
from planner.strategy.relief_layers import ReliefLayers, relief_layers

HOST_FRACTION = 0.9
"""Part of a device's share of host memory that offloaded tensors may take."""


def memory_limit_bytes(problem: Problem, hardware: Hardware) -> float:
    """Peak that may be predicted: it has the wanted chance to fit, or leaves the given margin, or both."""
    return usable_bytes(hardware.memory_bytes, problem.constraints, the_software(problem).name)


def host_limit_bytes(hardware: Hardware) -> float:
    """What offloaded tensors of one device may take of its node's memory, which its devices share evenly."""
    return hardware.host_memory_bytes_per_device * HOST_FRACTION


def split_rules(problem: Problem, hardware: Hardware, layers: ReliefLayers | None = None) -> SplitRules:
    """What every dealing of layers must respect; ``layers`` are relieved (None = those that the pins ask for)."""
    columns = the_software(problem).release.space.columns
    rules = SplitRules(
        limit_bytes=memory_limit_bytes(problem, hardware),
        host_limit_bytes=host_limit_bytes(hardware),
        uniform=columns.uniform_recompute,
        even=columns.even_layers,
        whole=columns.whole_recompute,
        empty_ends=columns.empty_ends,
    )
    return rules.relieving(relief_layers(problem.constraints.pins) if layers is None else layers)
