"""A measured run in the planner's terms."""

from __future__ import annotations

from dataclasses import dataclass

from planner.evidence.runs.flavours import Flavour
from planner.evidence.runs.software import SoftwareDescription
from planner.evidence.runs.truth import TruthRow
from planner.model.spec import ModelSpec
from planner.predict.physics.physics import Physics
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from profiles.cluster import Cluster


@dataclass(frozen=True, slots=True)
class MappedRun:
    """A measured run in the planner's terms."""

    row: TruthRow
    flavour: Flavour
    model: ModelSpec
    cluster: Cluster
    workload: Workload
    strategy: Strategy
    chunk_layers: tuple[int, ...]
    arithmetic: str
    """Precision of the matmuls, wider or narrower than a plan may ask for (fp32, fp4)."""
    traits: Physics
    software: SoftwareDescription
