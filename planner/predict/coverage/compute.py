"""The operator times that the compute of a step is made from: every operator of every layer kind, both ways."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from planner.model.operator import Operator
from planner.model.operators import embedding_operators, head_operators, layer_operators
from planner.model.spec import ModelSpec
from planner.predict.cost.hardware import Hardware
from planner.predict.cost.operator_time import (
    attention_flops,
    is_matmul,
    matmul_sizes,
    measured_attention,
    moved_bytes,
    operator_backward_s,
    operator_forward_s,
)
from planner.predict.coverage.leaning import Leaning, rung_and_sigma, whole_shape
from planner.predict.layer_keys import LayerKeys
from profiles.prediction.rungs import Prediction, Rung

BACKWARD_SIGMA = 0.12
"""Extra spread of a backward attention taken as 2.5 times the forward one: measured efficiencies differ that much."""


def compute_leanings(model: ModelSpec, keys: LayerKeys, hardware: Hardware) -> list[Leaning]:
    """Lookups of one micro-batch over all layers, in seconds on one device (before the pipeline splits them)."""
    found: list[Leaning] = []
    for kind in range(len(model.layer_kinds)):
        count = sum(run.count for run in model.layer_runs if run.kind == kind)
        for operator in layer_operators(model, kind):
            found.extend(_operator(operator, keys, hardware, count))
    for operator in (*embedding_operators(model), *head_operators(model)):
        found.extend(_operator(operator, keys, hardware, 1))
    return found


def _operator(operator: Operator, keys: LayerKeys, hardware: Hardware, count: int) -> Iterator[Leaning]:
    forward_s = operator_forward_s(operator, keys, hardware)
    input_s, weight_s = operator_backward_s(operator, keys, hardware, forward_s)
    measured = hardware.rates.measured
    if is_matmul(operator):
        m, n, k, groups = matmul_sizes(operator, keys)
        dtype = measured.matmul_dtype if measured else ""
        for part, sizes, seconds in (
            ("forward", (m, n, k), forward_s),
            ("dgrad", (m, k, n), input_s),
            ("wgrad", (n, k, m), weight_s),
        ):
            prediction = measured.matmul(*sizes, groups, part) if measured else None
            shape = whole_shape(m=sizes[0], n=sizes[1], k=sizes[2])
            if groups[0] > 1:
                shape["num_groups"] = round(float(groups[0]))
            yield _leaning(operator, part, dtype, shape, prediction, float(seconds[0]) * count)
        return
    dtype = measured.wide_dtype if measured else ""
    if operator.op_class == "attention":
        prediction = measured_attention(operator, keys, hardware, attention_flops(operator, keys))
        shape = whole_shape(
            batch_size=keys.micro_batch_size,
            query_length=float(keys.sequence_length),
            num_heads=operator.num_heads / keys.tp,
            num_kv_heads=np.maximum(operator.num_kv_heads / keys.tp, 1.0),
            head_dim=float(operator.qk_dim),
        )
        yield _leaning(operator, "forward", dtype, shape, prediction, float(forward_s[0]) * count)
        backward = None
        if prediction is not None:
            # Not measured itself: taken over from the forward pass.
            rung = np.where(prediction.rung <= Rung.TRANSFER, np.int8(Rung.TRANSFER), prediction.rung)
            backward = Prediction(prediction.time_s, np.hypot(prediction.sigma, BACKWARD_SIGMA), rung)
        yield _leaning(operator, "backward", dtype, shape, backward, float(input_s[0]) * count)
        return
    moved = moved_bytes(operator, keys)
    prediction = measured.moved(operator.op_class, moved) if measured else None
    both_s = float((forward_s + input_s + weight_s)[0])
    shape = whole_shape(num_bytes=moved)
    yield _leaning(operator, "forward and backward", dtype, shape, prediction, both_s * count)


def _leaning(
    operator: Operator, part: str, dtype: str, shape: dict[str, int], found: Prediction | None, seconds: float
) -> Leaning:
    rung, sigma = rung_and_sigma(found, "compute")
    return Leaning("compute", f"{operator.op_class} {operator.name}", part, dtype, shape, rung, sigma, seconds)
