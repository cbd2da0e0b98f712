"""What Megatron's flags cannot say about single stages: one recompute and one offload setting serve all.

Rules over the layout of a whole plan; silent before there is one.  The reader of the flags gives the same stages back.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.backends.emission.layout import StageLayout
from planner.backends.rules.pipeline import end_problem, placement_problem
from planner.backends.rules.rule import RuleInput
from planner.plan.plan import StageRecompute
from planner.strategy.strategy import Strategy


def one_recompute(given: RuleInput) -> str | None:
    """Does every chunk recompute what the one setting means: its first N layers, or modules of all of them?"""
    layout, s = given.layout, given.strategy
    if layout is None:
        return None
    first = max((count for stage in layout for count in stage.recompute.num_layers_per_chunk), default=0)
    if s.recompute == "full" and not first:
        return "recompute is full, and no layer is recomputed: say none"
    for stage in layout:
        if stage.recompute != _recompute(s, stage, first):
            wanted = {
                "none": "nothing is recomputed",
                "selective": "all layers recompute the strategy's modules",
                "full": f"every chunk recomputes its first {first} layers",
            }[s.recompute]
            return f"one recompute setting serves all stages: {wanted}, on stage {stage.stage} too"
    return None


def _recompute(s: Strategy, stage: StageLayout, first: int) -> StageRecompute:
    """What the setting means on a stage."""
    layers = [chunk.num_layers for chunk in stage.chunks]
    counts = tuple(layers if s.recompute == "selective" else (min(first, own) for own in layers))
    if s.recompute == "none" or not any(counts):
        return StageRecompute(policy="none")
    return StageRecompute(policy=s.recompute, modules=s.recompute_modules, num_layers_per_chunk=counts)


def one_offload(some_layers: Callable[[RuleInput, int], bool]) -> Callable[[RuleInput], str | None]:
    """The rule that the offload switches hold for every stage and, but for ``some_layers``, for every layer.

    ``some_layers``: whether a stage may offload that many of its layers only.
    """

    def check(given: RuleInput) -> str | None:
        s = given.strategy
        for stage in given.layout or ():
            moved, layers = stage.offload.activation_layers, sum(chunk.num_layers for chunk in stage.chunks)
            if stage.offload.optimizer != s.optimizer_offload:
                return "one setting serves all stages: optimizer offload is on for all of them or for none"
            if moved != (layers if s.activation_offload else 0) and not some_layers(given, moved):
                return f"activation offload takes all {layers} layers of stage {stage.stage} or none, not {moved}"
        return None

    return check


def chunks_in_place(given: RuleInput) -> str | None:
    """Are all chunks there once, in the order of the layers, on the ranks where the schedule runs them?"""
    return placement_problem(given, of_chunk=end_problem)


def some_layers_alone(given: RuleInput, layers: int) -> bool:
    """Whether ``layers`` of a stage's layers can be offloaded whole: no pipeline, no recompute, fewer than all.

    megatron-core 0.19.2 core/transformer/transformer_config.py:1707-1722.
    """
    s = given.strategy
    possible = s.activation_offload and s.pp == 1 and s.recompute == "none"
    return possible and 0 < layers < given.model.num_layers


def whole_stages_only(given: RuleInput, layers: int) -> bool:
    """Whether a release without whole-layer offload takes some layers of a stage: never."""
    return False
