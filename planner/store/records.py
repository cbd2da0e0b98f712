"""What comes back from the store, besides whole plans?  Small frozen records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class PlanRecord:
    """One line of ``meshwright plans list``."""

    plan_id: str
    problem_id: str
    status: str
    step_time_s: float
    gap: float
    num_devices: int
    model_name: str
    cluster_name: str
    created_at: datetime
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelRecord:
    """One version of a label."""

    name: str
    version: int
    plan_id: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class EmissionRecord:
    """One written set of launch files."""

    emission_id: str
    plan_id: str
    target: str
    launcher: str
    manifest: Mapping[str, Any]
    created_at: datetime
