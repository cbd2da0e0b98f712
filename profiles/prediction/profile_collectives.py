"""The measured collectives that become curves: one for each group shape, from one library version each.

Where several batches measured the same group shape, the newest library version speaks (they are never averaged); 16-bit
data before others, since training reduces in 16 or 32 bit and all_gather times depend on bytes only.  In-place runs go
before out-of-place ones: frameworks reduce flat buffers in place.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import numpy as np

from profiles.observation_store.query import BATCH_COLUMN, Selection, select
from profiles.observation_store.store import ObservationStore
from profiles.prediction.collective_curves import CollectiveCurve, collective_curves
from profiles.prediction.profile import CollectiveKey, TableOrigin

_OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv", "broadcast")
_COLUMNS = (
    "operation",
    "dtype",
    "size_bytes",
    "group_size",
    "num_nodes",
    "concurrent_groups",
    "in_place",
    "algorithm",
    "launch",
    "time_s",
    BATCH_COLUMN,
)
_DTYPE_ORDER = {"bf16": 3, "fp16": 3, "fp32": 2}


def collective_tables(
    store: ObservationStore, device: str
) -> tuple[dict[CollectiveKey, CollectiveCurve], tuple[TableOrigin, ...]]:
    """Curves by group shape and where they come from."""
    wanted = Selection(devices=(device,), operation=_OPERATIONS, successes_only=True)
    rows = select(store, "collectives", wanted, _COLUMNS).to_pylist()
    batches = {batch.batch_id: batch for batch in store.batches()}
    versions = {name: batch.environment.communication_library_version for name, batch in batches.items()}
    series: dict[CollectiveKey, dict[tuple[Any, ...], list[tuple[float, float]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in rows:
        usable = row["group_size"] and row["group_size"] > 1 and row["size_bytes"] and row["launch"] != "in_situ"
        if not usable or row["algorithm"] == "custom":
            continue
        several = (row["concurrent_groups"] or 1) > 1
        key = CollectiveKey(row["operation"], row["group_size"], row["num_nodes"] or 1, several)
        rank = (
            batches[row[BATCH_COLUMN]].source.kind == "measured",
            tuple(int(part) for part in re.findall(r"\d+", versions[row[BATCH_COLUMN]])),
            _DTYPE_ORDER.get(row["dtype"], 1),
            row["in_place"] is not False,
            row[BATCH_COLUMN],
        )
        series[key][rank].append((float(row["size_bytes"]), row["time_s"]))
    points: dict[CollectiveKey, tuple[Any, Any]] = {}
    origins: list[TableOrigin] = []
    for key in sorted(series):
        rank = max(series[key])
        pairs = np.array(series[key][rank])
        points[key] = (pairs[:, 0], pairs[:, 1])
        batch = batches[rank[-1]]
        library = f"{batch.environment.communication_library} {versions[rank[-1]]}".strip()
        variant = f"{key.group_size} ranks on {key.num_nodes} node" + ("s" if key.num_nodes > 1 else "")
        origins.append(
            TableOrigin(
                operator=key.operation,
                dtype="",
                variant=variant + (", siblings active" if key.concurrent else ""),
                device=device,
                environment=library,
                format=batch.source.format,
                batch_ids=(rank[-1],),
                num_points=len(pairs),
            )
        )
    return collective_curves(points), tuple(origins)
