"""What is predicted for a measured point, in the quantities that were measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from planner.serving.engines.sglang.behaviour import BEHAVIOUR as SGLANG
from planner.serving.engines.tensorrt_llm.behaviour import BEHAVIOUR as TENSORRT_LLM
from planner.serving.engines.vllm.behaviour import BEHAVIOUR as VLLM
from planner.serving.evidence.mapped import MeasuredPoint
from planner.serving.evidence.unmapped import RowUnmapped
from planner.serving.predict.behaviour import Behaviour
from planner.serving.predict.iteration_time import Batch
from planner.serving.predict.lengths import request_sizes
from planner.serving.predict.predict import Predictor
from planner.serving.words import EngineName
from profiles.serving_kernels import kernel_times

BEHAVIOURS: dict[EngineName, Behaviour] = {"vllm": VLLM, "sglang": SGLANG, "tensorrt-llm": TENSORRT_LLM}


@dataclass(frozen=True, slots=True)
class Predicted:
    """Times in seconds; None where the quantity was not measured."""

    ttft_s: float | None = None
    tpot_s: float | None = None
    output_tokens_per_s: float | None = None


@cache
def _predictor(model: str, device: str, engine: EngineName, behaviour: Behaviour, point: _Subject) -> Predictor:
    return Predictor(point.point.model, point.point.cluster, kernel_times(device, engine), behaviour)


@dataclass(frozen=True, slots=True)
class _Subject:
    """A point that stands for its model and machine: all of one name are alike."""

    point: MeasuredPoint

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Subject)

    def __hash__(self) -> int:
        return 0


def predictor(point: MeasuredPoint, behaviour: Behaviour | None = None) -> Predictor:
    """The predictor of a point's model, machine and engine."""
    chosen = behaviour or BEHAVIOURS[point.engine]
    return _predictor(point.model.name, point.device, point.engine, chosen, _Subject(point))


def predicted(point: MeasuredPoint, behaviour: Behaviour | None = None) -> Predicted:
    """Predict one point; raises RowUnmapped where memory says that it cannot run."""
    asked = predictor(point, behaviour)
    match point.kind:
        case "static batch":
            return _static_batch(asked, point)
        case "first token":
            return Predicted(ttft_s=_prompts_s(asked, point, 1.0))
        case _:
            return _served(asked, point)


def _served(asked: Predictor, point: MeasuredPoint) -> Predicted:
    loads = np.array([min(float(point.load), 65536.0)])
    curve = asked.predicted_at(point.traffic, point.deployment, loads)
    if not curve.fits:
        raise RowUnmapped(f"does not fit: {curve.reason}")
    tokens = float(curve.output_tokens_per_s[0])
    if point.kind == "offline throughput":
        return Predicted(output_tokens_per_s=tokens)
    return Predicted(float(curve.ttft_s[0]), float(curve.tpot_s[0]), tokens)


def _prompts_s(asked: Predictor, point: MeasuredPoint, prompts: float) -> float:
    group, sizes = point.deployment.groups[0], request_sizes(point.traffic)
    times = asked.iteration_times(group, point.deployment.formats)
    seconds = times.seconds(Batch(prompts=prompts, prompt_tokens=sizes.new_tokens))
    return float(seconds) * asked.behaviour.prompt_factor + asked.behaviour.host_s


def _static_batch(asked: Predictor, point: MeasuredPoint) -> Predicted:
    """All prompts first, then all outputs, one batch: the offline measurements before continuous batching."""
    group, sizes = point.deployment.groups[0], request_sizes(point.traffic)
    times = asked.iteration_times(group, point.deployment.formats)
    first = _prompts_s(asked, point, float(point.load))
    behaviour = asked.behaviour
    each = float(times.seconds(Batch(sequences=float(point.load), context=sizes.context))) * behaviour.decode_factor
    each += behaviour.host_s + behaviour.host_s_a_sequence * point.load
    whole = first + (sizes.output_tokens - 1) * each
    return Predicted(first, each, point.load * sizes.output_tokens / whole)


def with_factors(behaviour: Behaviour, **factors: float) -> Behaviour:
    """A behaviour with other fitted values."""
    return replace(behaviour, **factors)
