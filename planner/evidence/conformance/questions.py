"""The questions that a back-end is tried on: small ones, on devices that it trains on."""

from __future__ import annotations

from planner.backends.asked import inside, why_not_these_devices
from planner.backends.backend import Software
from planner.errors import MeshwrightError
from planner.model.builtin import builtin_model
from planner.question.complete import complete_problem
from planner.question.problem import Constraints, Problem, Workload
from planner.search.backend_rules import BackEndRules
from profiles.catalogue import builtin_clusters, load_cluster
from profiles.cluster import Cluster

MODELS = ("gpt2-xl", "llama-3.2-1b", "llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v2")
"""Learned positions, tied and untied heads, routed experts, latent attention."""
DEVICES = (8, 64)
BATCH = 128
TOKENS = 1024


def questions(wanted: Software) -> tuple[Problem, ...]:
    """Questions that the back-end does not refuse as a whole; empty where it refuses all of them."""
    found = []
    for name in MODELS:
        for devices in DEVICES:
            cluster = _cluster(wanted, name, devices)
            problem = None if cluster is None else inside(_problem(name, cluster), wanted)
            if problem is not None and not BackEndRules(problem).always():
                found.append(problem)
    return tuple(found)


def _cluster(wanted: Software, model: str, devices: int) -> Cluster | None:
    """The first cluster of the catalogue whose devices the back-end trains on and that has so many of them."""
    for name in ("dgx-h100", *builtin_clusters()):
        try:
            cluster = load_cluster(name, devices)
        except MeshwrightError:
            continue
        if why_not_these_devices(wanted, _problem(model, cluster)) is None:
            return cluster
    return None


def _problem(model: str, cluster: Cluster) -> Problem:
    workload = Workload(global_batch_size=BATCH, sequence_length=TOKENS)
    return complete_problem(builtin_model(model), cluster, workload, Constraints())
