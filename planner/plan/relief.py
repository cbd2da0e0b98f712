"""The layers of a plan that recompute or offload, and those for which its question asked.

``planner.strategy.relief_layers`` has the words.
"""

from __future__ import annotations

from planner.plan.plan import Plan, StagePlan
from planner.strategy.relief_layers import ReliefLayers, relief_layers


def of_stages(plan: Plan) -> tuple[int, ...]:
    """Relieved layers of each chunk that a plan has on its stages."""
    return tuple(of_stage(stage) for stage in plan.stages)


def of_stage(stage: StagePlan) -> int:
    """Relieved layers a chunk: the same number on every chunk that has so many layers."""
    if stage.recompute.num_layers_per_chunk:
        return max(stage.recompute.num_layers_per_chunk)
    wanted, counts = stage.offload.activation_layers, [chunk.num_layers for chunk in stage.chunks]
    for relieved in range(max(counts, default=0) + 1):
        if sum(min(relieved, count) for count in counts) >= wanted:
            return relieved
    return max(counts, default=0)


def relieves_every_layer(plan: Plan) -> bool:
    """Whether every layer of a plan is recomputed or offloaded."""
    return all(of_stage(stage) >= max((chunk.num_layers for chunk in stage.chunks), default=0) for stage in plan.stages)


def relieves_first(plan: Plan, number: int) -> bool:
    """Whether exactly the first ``number`` layers of every chunk are recomputed."""
    return all(
        stage.recompute.num_layers_per_chunk == tuple(min(number, chunk.num_layers) for chunk in stage.chunks)
        for stage in plan.stages
    )


def asked_layers(plan: Plan) -> ReliefLayers:
    """Which layers the question of a plan asked to relieve: the given strategy of an estimate, else the pins."""
    return relief_layers(plan.origins.given if plan.origins is not None else plan.problem.constraints.pins)


def recompute_words(stage: StagePlan) -> str:
    """``none``, ``full 3/10`` (layers recomputed of layers held) or ``selective norm+mlp``."""
    recompute = stage.recompute
    if recompute.policy == "none":
        return "none"
    count = sum(recompute.num_layers_per_chunk)
    part = f" {count}/{stage.layers}" if recompute.num_layers_per_chunk else ""
    return f"{recompute.policy} {'+'.join(recompute.modules)}".rstrip() + part


def offload_words(stage: StagePlan) -> str:
    """``none``, ``optimizer``, ``activations of 4 layers`` or both."""
    words = ["optimizer"] if stage.offload.optimizer else []
    if stage.offload.activation_layers:
        words.append(f"activations of {stage.offload.activation_layers} layers")
    return " + ".join(words) or "none"
