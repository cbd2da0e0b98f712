"""Layers with the ZeRO-2/3 traffic of their parameters, which other exchanges hold up on the link that both take.

Parameters are gathered and gradients scattered beside a layer's compute.  What a layer shows of its own exchanges (of
tp, cp and ep) is no such time where they take the same link: a NIC, or the ports inside a node or NVLink domain, sends
one after the other.  So the window of the traffic is the layer without them::

    window = forward or backward of the layer - half of the visible seconds of each exchange on that link

A group of consecutive devices that is larger than the scale-up domain takes the NICs, any other one the ports.  Hidden
exchanges (``overlap_tp``, ``overlap_ep``) are *not counted* here.  Shape letters: R rows, N layer kinds.
"""

from __future__ import annotations

import numpy as np

from planner.predict.collective import BEHIND_NICS
from planner.predict.cost.data_parallel import with_traffic
from planner.predict.cost.frozen_weights import gathered_unit
from planner.predict.cost.hardware import Hardware
from planner.predict.cost.model_cost import LayerTable
from planner.predict.cost.short_axis import rows_at
from planner.predict.cost.step_payload import DataParallelism
from planner.predict.cost.uneven_rows import with_documents
from planner.predict.packed_rows import PackedRows
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows
from solver.arrays import Array, Ints


def layer_times_s(
    rows: StrategyRows,
    layers: LayerTable,
    key: Ints,
    groups: tuple[DataParallelism, DataParallelism],
    at_work: tuple[Workload, Hardware, PackedRows | None],
) -> tuple[Array, Array]:
    """Forward and backward of every layer kind with ZeRO-2/3 traffic and uneven documents: two [R, N]."""
    (dense, expert), (workload, hardware, documents) = groups, at_work
    forward_s, backward_s = rows_at(layers.forward_s, key), rows_at(layers.backward_s, key)
    for kind in range(forward_s.shape[1]) if np.any(dense.zero >= 2) else ():
        at = (key, kind)
        units = (
            gathered_unit(layers, layers.dense_parameters[at], dense, "dense", at),
            gathered_unit(layers, layers.expert_parameters[at], expert, "expert", at),
        )
        exchanges_s = layers.tp_s[at], layers.cp_s[at], layers.ep_s[at]
        busy_s = busy_link_s(rows, exchanges_s, dense, hardware)
        before = forward_s[:, kind], backward_s[:, kind]
        forward_s[:, kind], backward_s[:, kind] = with_traffic(units, workload, hardware, *before, busy_s)
    attention_s = rows_at(layers.attention_forward_s, key), rows_at(layers.attention_backward_s, key)
    return with_documents((forward_s, backward_s), attention_s, rows, documents, workload)


def busy_link_s(
    rows: StrategyRows, exchanges_s: tuple[Array, Array, Array], parallel: DataParallelism, hardware: Hardware
) -> Array:
    """Seconds of one pass in which a layer's exchanges hold the link of its data parallelism: [R].

    ``exchanges_s``: visible seconds of tp, cp and ep, forward and backward together.
    """
    inside = [level.devices_per_group for level in hardware.levels if level.kind not in BEHIND_NICS]
    domain = max(inside, default=1)
    over_nics = parallel.ranks * parallel.stride > domain
    extents = rows.tp, rows.tp * rows.cp, rows.etp * rows.ep
    return sum(
        (
            np.where((extent > domain) == over_nics, 0.5 * visible_s, 0.0)
            for extent, visible_s in zip(extents, exchanges_s, strict=True)
        ),
        start=np.zeros(len(rows)),
    )
