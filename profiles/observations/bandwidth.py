"""Algorithm and bus bandwidth, from size, group and time of a collective.

    algorithm bandwidth = size / time
    bus bandwidth       = algorithm bandwidth x factor(n):   all_reduce 2(n - 1)/n;   all_gather, reduce_scatter,
                          all_to_all (n - 1)/n;   the others 1

Source: NVIDIA/nccl-tests doc/PERFORMANCE.md (definition of busbw).  Sizes are full logical tensors.
"""

from __future__ import annotations

from profiles.observations.records import CollectiveObservation


def bus_factor(operation: str, group_size: int) -> float:
    """Bus over algorithm bandwidth for ``group_size`` ranks."""
    if operation == "all_reduce":
        return 2.0 * (group_size - 1) / group_size
    if operation in ("all_gather", "reduce_scatter", "all_to_all"):
        return (group_size - 1) / group_size
    return 1.0


def group_size_of_ratio(operation: str, ratio: float) -> float | None:
    """Ranks that a ratio of bus to algorithm bandwidth implies (not rounded); None where it implies none.

    all_reduce: n = 2 / (2 - ratio);  all_gather, reduce_scatter, all_to_all: n = 1 / (1 - ratio).
    """
    whole = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "all_to_all": 1.0}.get(operation)
    if whole is None or not 0 < ratio < whole:
        return None
    return whole / (whole - ratio)


def bandwidths_bytes_per_s(observation: CollectiveObservation) -> tuple[float | None, float | None]:
    """(algorithm, bus) bandwidth of one observation; None where time or group are unknown."""
    if observation.timing is None or observation.size_bytes == 0:
        return None, None
    algorithm = observation.size_bytes / observation.timing.time_s
    if observation.group_size is None:
        return algorithm, None
    return algorithm, algorithm * bus_factor(observation.operation, observation.group_size)
