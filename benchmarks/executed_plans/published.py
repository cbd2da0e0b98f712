"""The plans that a reader meets: those of README, and those of the golden files."""

from __future__ import annotations

from benchmarks.executed_plans.corpus import Candidate
from benchmarks.executed_plans.values import plan_values
from planner.backends.asked import inside
from planner.backends.registry import software
from planner.errors import NoFeasiblePlan
from planner.model.load import load_model
from planner.question.problem import Problem, Workload
from planner.search.find import find_plan
from profiles.catalogue import load_cluster

QUESTIONS = (
    ("readme", "llama-3.1-70b", "dgx-h100", 64, 1024, 8192),
    ("tutorial", "llama-3.1-8b", "dgx-h100", 16, 128, 8192),
    ("mixture", "mixtral-8x7b", "dgx-h100", 32, 256, 4096),
)
"""Name, model, cluster, devices, samples, tokens."""
CLUSTERS = {"maxtext": "tpu-v5p", "mindspeed": "ascend-910b-8"}


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
