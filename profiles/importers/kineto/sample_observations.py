"""From samples to observations of operators and collectives of one environment."""

from __future__ import annotations

from profiles.importers.kineto.operators import OperatorSamples
from profiles.importers.kineto.rank_merge import CollectiveTimes
from profiles.importing.redaction import Redactor
from profiles.observations.records import CollectiveObservation, OperatorObservation

TICKS_PER_S = 1e9


def operator_observations(samples: OperatorSamples, redactor: Redactor) -> list[OperatorObservation]:
    """One observation for each different operator."""
    return [
        OperatorObservation(
            operator=key.operator,
            name=redactor.clean(key.name),
            timing=durations.timing(TICKS_PER_S),
            phase=key.phase,
            dtype=key.dtype,
            shape=dict(key.shape),
            causal=key.causal,
            detail=dict(key.detail),
            row=samples.rows[key],
        )
        for key, durations in samples.durations.items()
    ]


def collective_observations(
    times: CollectiveTimes, placed: dict[tuple[int, ...], tuple[int | None, int | None, int | None]]
) -> list[CollectiveObservation]:
    """One observation for each different collective; ``placed`` = (nodes, members on each, stride) by ranks."""
    result = []
    for key, durations in times.durations.items():
        if key.size_bytes == 0 and key.operation != "barrier":
            continue
        nodes, each, stride = placed.get(key.ranks, (None, None, None))
        detail: dict[str, str | int | float | bool] = {"method": key.how}
        if key.uneven:
            detail["uneven"] = True
        result.append(
            CollectiveObservation(
                operation=key.operation,
                size_bytes=key.size_bytes,
                group_size=2 if key.operation == "send_recv" else key.group_size,
                timing=durations.timing(TICKS_PER_S),
                dtype=key.dtype,
                num_nodes=nodes,
                devices_per_node=each,
                stride=stride,
                launch="in_situ",
                num_channels=key.num_channels,
                detail=detail,
                row=times.rows[key],
            )
        )
    return result
