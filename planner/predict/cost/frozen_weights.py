"""The bytes of weights that do not learn: on the device, gathered for a pass, and widened for a product.

And 8-bit copies of those that do, which the ends do not have.

Beside them, because they are fixed bytes of a layer or an end as well, the moments that some parameters keep beyond the
others (``planner.predict.cost.further_moments``).

Frozen weights, and a resident reference model's, are whole on every rank below ZeRO-3 and sharded as the others from
there on.  Shape letters: R rows, N layer kinds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.model.spec import ModelSpec
from planner.predict.cost.further_moments import FurtherMoments, further_moments
from planner.predict.cost.model_cost import EndTable, LayerTable, ModelCost
from planner.predict.cost.short_axis import most_of_row, rows_at
from planner.predict.cost.step_payload import DataParallelism, GatheredUnit
from planner.predict.memory.framework_memory import narrow_copies
from planner.question.problem import Workload
from solver.arrays import Array, Ints


@dataclass(frozen=True, slots=True)
class FrozenBytes:
    """Bytes that weights which do not learn take on the device: of layers [R, N], of the ends [R].

    A resident reference model's among them, and ``moments_*``: further moments of the optimizer.  ``least_*``: sharded
    over every rank, with the optimizer on the host: the least of all leaves of a layout.
    """

    layer: Array
    embedding: Array
    head: Array
    least_layer: Array
    least_embedding: Array
    least_head: Array
    moments_layer: Array
    moments_embedding: Array
    moments_head: Array


def frozen_bytes(
    costs: tuple[ModelSpec, Workload, ModelCost],
    key: Ints,
    parallels: tuple[DataParallelism, DataParallelism],
    copied: Array,
    stages: Ints,
    *,
    copy_bytes: float = 0.0,
) -> FrozenBytes:
    """Frozen weights on the device; ``copied``: bytes of a token table that one of ``stages`` does not hold again.

    ``copy_bytes``: of an element of the two narrow copies of the layers' dense weights, which ZeRO-3 casts from what it
    gathers; 0 = none.  Norms and routers, below a hundredth of a layer, are counted among them.
    """
    model, workload, cost = costs
    training = workload.trained
    resident = float(training.reference_at == "resident")
    here: list[Array] = []
    least: list[Array] = []
    for table in (cost.layers, cost.embedding, cost.head):
        parts = []
        for kind, parallel in zip(("dense", "expert"), parallels, strict=True):
            columns = (getattr(table, f"{name}_{kind}_bytes") for name in ("frozen", "reference"))
            frozen, reference = (rows_at(column, key) for column in columns)
            whole = frozen + resident * reference - (copied if table is cost.head and kind == "dense" else 0.0)
            shards = np.where(parallel.zero >= 3, parallel.shards, 1.0), np.maximum(parallel.ranks, 1.0)
            parts.append([whole / (each[:, None] if whole.ndim > 1 else each) for each in shards])
        here.append(parts[0][0] + parts[1][0])
        least.append(parts[0][1] + parts[1][1])
    if copy_bytes:
        each = narrow_copies(parallels[0].zero, parallels[0].eight_bit, copy_bytes)
        here[0] = here[0] + each[:, None] * rows_at(cost.layers.dense_parameters, key)
    moments = _moments(further_moments(model, workload, cost.keys), cost, key, parallels, stages)
    held = [frozen + further for frozen, further in zip(here, moments, strict=True)]
    return FrozenBytes(
        layer=held[0],
        embedding=held[1],
        head=held[2],
        least_layer=least[0],
        least_embedding=least[1],
        least_head=least[2],
        moments_layer=moments[0],
        moments_embedding=moments[1],
        moments_head=moments[2],
    )


def _moments(
    further: FurtherMoments | None,
    cost: ModelCost,
    key: Ints,
    parallels: tuple[DataParallelism, DataParallelism],
    stages: Ints,
) -> tuple[Array, Array, Array]:
    """Further moments on the device: of layers [R, N], of embedding and head [R].

    A pipeline's head may hold a second copy of the token table.
    """
    if further is None:
        return np.zeros((len(key), cost.layers.dense_parameters.shape[1])), np.zeros(len(key)), np.zeros(len(key))
    copied = (stages > 1).astype(np.float64)
    dense, expert = ((each.optimizer_offload == 0) / np.where(each.zero >= 1, each.shards, 1.0) for each in parallels)
    head = further.head[key] + copied * further.table_bytes * cost.table_copy_parameters[key]
    layers = rows_at(further.dense, key) * dense[:, None] + rows_at(further.expert, key) * expert[:, None]
    return layers, further.embedding[key] * dense, head * dense


def frozen_working_bytes(zero: Ints, cost: ModelCost, key: Ints) -> Array:
    """Frozen weights that are whole for a moment: one layer and the next under ZeRO-3, and a 16-bit copy: [R]."""
    layers = cost.layers
    layer = most_of_row((layers.frozen_dense_bytes + layers.frozen_expert_bytes)[key])
    end = np.maximum(cost.embedding.frozen_dense_bytes[key], cost.head.frozen_dense_bytes[key])
    gathered = np.where(zero >= 3, np.maximum(2.0 * layer, layer + end), 0.0)
    return np.asarray(gathered + most_of_row(layers.widened_bytes[key]))


def gathered_unit(
    table: LayerTable | EndTable,
    parameters: Array,
    parallel: DataParallelism,
    kind: str,
    at: Ints | tuple[Ints, int],
    less: Array | float = 0.0,
) -> GatheredUnit:
    """What is gathered of one layer or end; ``less``: frozen bytes that are counted elsewhere."""
    frozen, reference = (getattr(table, f"{name}_{kind}_bytes")[at] for name in ("frozen", "reference"))
    return GatheredUnit(parameters, parallel, frozen - less, reference)
