"""The plans that a reader meets, those of README and the tutorial; and single strategies that the draw meets late."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.executed_plans.corpus import Candidate, small_model
from benchmarks.executed_plans.values import plan_values, strategy_words
from planner.backends.asked import inside
from planner.backends.registry import software
from planner.errors import NoFeasiblePlan
from planner.model.load import load_model
from planner.question.problem import Problem, Workload
from planner.question.training import Training
from planner.search.backend_rules import BackEndRules
from planner.search.estimate import estimate
from planner.search.find import find_plan
from planner.strategy.strategy import RecomputeModule, Strategy
from profiles.catalogue import load_cluster

QUESTIONS = (
    ("readme", "llama-3.1-70b", "dgx-h100", 64, 1024, 8192),
    ("tutorial", "llama-3.1-8b", "dgx-h100", 16, 128, 8192),
    ("mixture", "mixtral-8x7b", "dgx-h100", 32, 256, 4096),
)
"""Name, model, cluster, devices, samples, tokens."""
_SYNCHRONOUS = Strategy(num_microbatches=2, overlap_grad_reduce=False, overlap_param_gather=False)
_XLA = Strategy(num_microbatches=2, zero_stage=0, recompute="full")
_XLA_STAGES = replace(_XLA, pp=2, schedule="gpipe", zero_stage=1)
_XLA_MESHES: tuple[Strategy, ...] = (
    replace(_XLA, dp_shard=2, zero_stage=3),
    _XLA_STAGES,
    replace(_XLA_STAGES, vpp=2, schedule="looped_bfs"),
    replace(_XLA, tp=2, sp=True),
    replace(_XLA, dp_shard=2, zero_stage=1, num_microbatches=1, micro_batch_size=2),
    replace(_XLA, dp_shard=2),
    replace(_XLA, dp_replicate=2, dp_shard=2, zero_stage=3),
    replace(_XLA, tp=2, sp=True, dp_shard=2, zero_stage=3),
    replace(_XLA_STAGES, dp_shard=2, zero_stage=3),
    replace(_XLA_STAGES, tp=2, sp=True),
    replace(_XLA_STAGES, tp=2, sp=True, vpp=2, schedule="looped_bfs"),
)
"""Each way to cut a model over XLA's devices, alone and two together."""
_XLA_KEPT: tuple[tuple[str, tuple[RecomputeModule, ...], slice], ...] = (
    ("llama-3.1-8b", (), slice(None)),
    ("llama-3.1-8b", ("norm", "mlp"), slice(None)),
    ("mixtral-8x7b", ("norm", "moe"), slice(0, 10, 3)),
    ("llama-3.1-8b", ("norm", "activation"), slice(0, 9, 2)),
    ("llama-3.2-1b", ("attention_core", "norm", "activation"), slice(3, 8)),
    ("mixtral-8x7b", (), slice(3, 8, 2)),
    ("deepseek-v2", ("norm", "mlp", "moe"), slice(0, 8, 3)),
)
"""Model, the modules that are recomputed (none said: whole layers), and on which of the meshes."""


def _xla(model: str, mesh: Strategy, modules: tuple[RecomputeModule, ...]) -> Strategy:
    """The mesh with these modules recomputed; the tensor axis splits experts too."""
    strategy = mesh if model.startswith("llama") else replace(mesh, etp=mesh.tp)
    return replace(strategy, recompute="selective", recompute_modules=modules) if modules else strategy


CHOSEN: dict[str, tuple[tuple[str, Strategy], ...]] = {
    "native": (
        ("llama-3.1-8b", replace(_SYNCHRONOUS, pp=2, num_microbatches=4, schedule="zb_h1", overlap_param_gather=True)),
        (
            "llama-3.1-8b",
            replace(_SYNCHRONOUS, pp=2, vpp=2, num_microbatches=4, schedule="looped_bfs", overlap_param_gather=True),
        ),
    ),
    "accelerate": (("llama-3.1-8b", replace(_SYNCHRONOUS, dp_shard=2, zero_stage=1)),),
    "maxtext": (
        *((model, _xla(model, mesh, modules)) for model, modules, some in _XLA_KEPT for mesh in _XLA_MESHES[some]),
        ("mixtral-8x7b", replace(_XLA, ep=2, dp_shard=2, zero_stage=3)),
    ),
    "deepspeed": (
        ("llama-3.1-8b", replace(_SYNCHRONOUS, dp_shard=2, zero_stage=1)),
        ("llama-3.1-8b", replace(_SYNCHRONOUS, dp_shard=2, zero_stage=2, num_microbatches=2, recompute="full")),
        ("llama-3.1-8b", replace(_SYNCHRONOUS, dp_shard=2, zero_stage=3, micro_batch_size=2)),
        ("llama-3.1-8b", replace(_SYNCHRONOUS, tp=2, zero_stage=1)),
        ("llama-3.1-8b", replace(_SYNCHRONOUS, tp=2, dp_shard=2, zero_stage=2)),
        ("llama-3.1-8b", replace(_SYNCHRONOUS, cp=2, cp_kind="all_to_all", zero_stage=3)),
        ("mixtral-8x7b", replace(_SYNCHRONOUS, ep=2, dp_shard=2, zero_stage=2)),
        ("llama-3.1-8b", replace(_SYNCHRONOUS, pp=2, zero_stage=1, num_microbatches=4)),
        ("llama-3.1-8b", replace(_SYNCHRONOUS, pp=2, dp_shard=2, zero_stage=1, num_microbatches=4, recompute="full")),
        (
            "llama-3.1-8b",
            replace(
                _SYNCHRONOUS, pp=2, vpp=2, schedule="dualpipev", zero_stage=1, num_microbatches=4, recompute="none"
            ),
        ),
    ),
}
_FULL = replace(_SYNCHRONOUS, dp_shard=2, recompute="full")
ADAPTED: dict[str, tuple[Strategy, ...]] = {"deepspeed": tuple(replace(_FULL, zero_stage=stage) for stage in (1, 2, 3))}
"""Those that train adapters on a frozen Llama; PEFT must be importable."""
ADAPTERS = Training(kind="lora", rank=4, targets=("q", "v"))
CLUSTERS = {"maxtext": "tpu-v5p", "mindspeed": "ascend-910b-8"}


def chosen(backend: str) -> list[Candidate]:
    """Strategies named by hand.  Raises FindingsInvalid for one that the back-end refuses."""
    found = []
    wanted: list[tuple[str, str, Strategy, Training | None]] = []
    wanted += [("chosen", model, strategy, None) for model, strategy in CHOSEN.get(backend, ())]
    wanted += [("lora", "llama-3.1-8b", strategy, ADAPTERS) for strategy in ADAPTED.get(backend, ())]
    for group, model, strategy, training in wanted:
        problem = Problem(
            model=small_model(model),
            cluster=load_cluster(CLUSTERS.get(backend, "dgx-h100"), strategy.world_size),
            workload=Workload(global_batch_size=strategy.global_batch_size, sequence_length=512, training=training),
        )
        own = inside(problem, software(backend))
        plan = estimate(own, BackEndRules(own).spelled(strategy))
        found.append(Candidate(f"{group}/{model}/{strategy_words(strategy)}", plan, plan_values(plan)))
    return found


def published(backend: str) -> list[Candidate]:
    """The back-end's own plan of each question; those that it cannot answer are left out."""
    found = []
    for name, model, cluster, devices, samples, tokens in QUESTIONS:
        problem = Problem(
            model=load_model(model),
            cluster=load_cluster(CLUSTERS.get(backend, cluster), devices),
            workload=Workload(global_batch_size=samples, sequence_length=tokens),
        )
        try:
            plan = find_plan(inside(problem, software(backend)))
        except NoFeasiblePlan:
            continue
        found.append(Candidate(f"{name}/{model}/{devices}", plan, plan_values(plan)))
    return found
