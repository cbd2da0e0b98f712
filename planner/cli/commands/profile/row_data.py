"""One observation as JSON: its timing flattened, and the bandwidths that follow from a collective."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from profiles.observations.bandwidth import bandwidths_bytes_per_s
from profiles.observations.records import CollectiveObservation, Observation
from profiles.observations.timing import Timing


def row_data(observation: Observation) -> dict[str, Any]:
    """One observation as plain data: its timing flattened, and for collectives the bandwidths that follow."""
    data: dict[str, Any] = {}
    for each in fields(observation):
        value = getattr(observation, each.name)
        if each.name == "timing":
            data |= {part.name: getattr(value, part.name, None) for part in fields(Timing)}
        else:
            data[each.name] = value
    if isinstance(observation, CollectiveObservation):
        algorithm, bus = bandwidths_bytes_per_s(observation)
        data |= {"algorithm_bandwidth_bytes_per_s": algorithm, "bus_bandwidth_bytes_per_s": bus}
    return data
