"""The plans to execute: a cover of the pairs of values of a back-end's declared space, the same from the same seed.

Strategies are drawn from the space itself, on one, two, four and eight devices, for a few kinds of model.  Greedily,
the plan with the most pairs of values that no plan before has is taken next, so the first plans cover most.  Variants
with uneven stages, and with recompute in a part of the layers, are among the candidates.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from benchmarks.executed_plans.values import pairs, plan_values
from planner.backends.registry import software
from planner.backends.rules.rule import rule_input
from planner.model.load import load_model
from planner.model.spec import LayerRun, ModelSpec
from planner.plan.plan import Plan
from planner.question.problem import Constraints, Problem, Workload
from planner.search.backend_rules import BackEndRules
from planner.search.estimate import estimate
from planner.search.sample import random_strategies
from planner.strategy.relief_layers import ReliefLayers
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from profiles.validation import FindingsInvalid

MODELS = ("llama-3.1-8b", "mixtral-8x7b", "llama-3.2-1b", "qwen3-30b-a3b", "deepseek-v2", "gpt2-xl", "mistral-7b")
CLUSTERS = {"maxtext": "tpu-v5p", "mindspeed": "ascend-910b-8"}
NO_CPU_RUNS = {"megatron": frozenset({"deepseek-v2"})}
"""Models that the back-end's runner refuses: latent attention is built with Transformer Engine only."""
DEVICES = (4, 2, 8, 1)
LAYERS = 8
NARROW = 1024
"""Width of MLPs and experts: so small that every strategy fits, which keeps the whole space in the draw."""
BF16_GRADIENTS = frozenset({("deepspeed", 2)})
"""Back-ends and numbers of devices asked with gradients in bf16: without ZeRO DeepSpeed keeps no fp32 ones."""
DRAWS = 400
VALUE_WEIGHT = 50
KEPT = 60
"""Candidates a model and number of devices."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One plan of the corpus."""

    name: str
    plan: Plan
    values: dict[str, str]


def corpus(backend: str, count: int, seed: int = 0) -> list[Candidate]:
    """At most ``count`` plans, those that cover most pairs first."""
    if count == 0:
        return []
    candidates = list(_candidates(backend, seed))
    known = {each.name: pairs(each.values) | frozenset(each.values.items()) for each in candidates}
    left = {each.name: each for each in candidates}
    covered: set[object] = set()
    chosen: list[Candidate] = []
    while left and len(chosen) < count:
        # Of equals the first: models and numbers of devices have an order.
        best = max(left.values(), key=lambda each: _worth(known[each.name] - covered, each.plan.chosen().world_size))
        covered |= known[best.name]
        chosen.append(left.pop(best.name))
    return chosen


def _worth(new: frozenset[object], ranks: int) -> float:
    """Pairs that nothing before has, a value alone as many of them; more ranks must show more, as they take longer."""
    single = sum(isinstance(each, tuple) and isinstance(each[0], str) for each in new)
    return (len(new) + VALUE_WEIGHT * single) / (4 + ranks)


def small_model(name: str) -> ModelSpec:
    """A built-in model with eight narrow layers, every kind of layer among them."""
    model = load_model(name)
    sequence = model.layer_kind_sequence()
    picked = sorted({kind: sequence.index(kind) for kind in set(sequence)}.items(), key=lambda each: each[1])
    runs = [LayerRun(kind=kind, count=1) for kind, _ in picked[:-1]]
    runs.append(LayerRun(kind=picked[-1][0], count=LAYERS - len(runs)))
    kinds = tuple(
        kind.model_copy(
            update={
                "mlp": kind.mlp and kind.mlp.model_copy(update={"intermediate_size": NARROW}),
                "moe": kind.moe
                and kind.moe.model_copy(
                    update={
                        "expert_intermediate_size": NARROW,
                        "shared_intermediate_size": NARROW if kind.moe.shared_intermediate_size else 0,
                    }
                ),
            }
        )
        for kind in model.layer_kinds
    )
    return model.model_copy(update={"layer_runs": tuple(runs), "layer_kinds": kinds})


def _candidates(backend: str, seed: int) -> Iterator[Candidate]:
    for model in MODELS:
        if model in NO_CPU_RUNS.get(backend, ()):
            continue
        for devices in DEVICES:
            problem = Problem(
                model=small_model(model),
                cluster=load_cluster(CLUSTERS.get(backend, "dgx-h100"), devices),
                workload=Workload(
                    global_batch_size=16 * devices,
                    sequence_length=512,
                    gradient_dtype="bf16" if (backend, devices) in BF16_GRADIENTS else "fp32",
                ),
                constraints=Constraints(backends=(backend,)),
            )
            rules = BackEndRules(problem)
            if rules.always():
                continue
            for number, plan in enumerate(islice(_plans(problem, rules, seed), KEPT)):
                yield Candidate(f"{model}/{devices}/{number}", plan, plan_values(plan))


def _plans(problem: Problem, rules: BackEndRules, seed: int) -> Iterator[Plan]:
    """Plans of strategies of which no two exercise the same."""
    draw, seen = random.Random(seed), set[str]()
    for strategy in islice(random_strategies(problem, seed), DRAWS):
        if rules.refuses(strategy):
            continue
        plan = _plan(problem, rules.spelled(strategy), draw)
        if plan is None:
            continue
        key = str(sorted(plan_values(plan).items()))
        if key not in seen:
            seen.add(key)
            yield plan


def _plan(problem: Problem, strategy: Strategy, draw: random.Random) -> Plan | None:
    """Dealt evenly, or not; recompute in all layers, or where it is needed.  None where a rule refuses that."""
    table = software(problem.constraints.backends[0]).release.space.rules
    layers = _dealt(problem.model.num_layers, strategy.num_chunks, draw)
    wanted: ReliefLayers = "every" if draw.random() < 0.5 else "where_needed"
    tries: tuple[tuple[tuple[int, ...] | None, ReliefLayers], ...] = ((layers, wanted), (None, "every"))
    for chunk_layers, relief in tries:
        try:
            plan = estimate(problem, strategy, chunk_layers, relief=relief)
        except (FindingsInvalid, ValueError):
            continue
        if not table.violations(rule_input(plan)):
            return plan
    return None


def _dealt(layers: int, chunks: int, draw: random.Random) -> tuple[int, ...] | None:
    """Now and then a layer more on one chunk than on another; None = as the planner deals them."""
    if chunks == 1 or layers < 2 * chunks or draw.random() < 0.5:
        return None
    even = [layers // chunks + (chunk < layers % chunks) for chunk in range(chunks)]
    first, second = draw.sample(range(chunks), 2)
    even[first], even[second] = even[first] + 1, even[second] - 1
    return tuple(even)
