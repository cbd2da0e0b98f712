"""Questions over devices of unequal speed that are small enough to be trained on CPU ranks."""

from __future__ import annotations

from planner.model.load import model_from_data
from planner.question.problem import Constraints, Workload
from planner.search.pools.assemble import assemble_pools_plan
from planner.search.pools.find import find_assignment
from planner.search.pools.plan import PoolsPlan
from planner.search.pools.problem import PoolsProblem, complete_pools_problem
from profiles.catalogue import read_cluster
from profiles.cluster import Cluster

FAST_FLOPS_PER_S = 2e10
"""As slow as a core, so that computing takes all the time."""


def devices(name: str, count: int, slower: float, *, nodes: int = 1, memory_bytes: int = 2**34) -> Cluster:
    """Nodes of devices that take ``slower`` times as long as the fast ones."""
    rate = FAST_FLOPS_PER_S / slower
    device = {
        "name": name,
        "vendor": "NVIDIA",
        "architecture": "hopper",
        "memory_bytes": memory_bytes,
        "memory_bandwidth_bytes_per_s": 1e10 / slower,
        "peak_flops_per_s": {"bf16": rate, "fp32": rate},
        "num_compute_units": 1,
        "provenance": {"default": {"confidence": "D", "source": "made up for tests"}},
    }
    pool = {
        "device": device,
        "num_nodes": nodes,
        "devices_per_node": count,
        "scale_up": {"kind": "switch", "domain_size": count, "bandwidth_bytes_per_s": 1e10, "latency_s": 1e-6},
        "nics_per_node": 1,
        "nic_bandwidth_bytes_per_s": 1e9,
        "host": {"memory_bytes": 2**34, "link_bandwidth_bytes_per_s": 1e10},
    }
    return read_cluster({"schema_version": 1, "name": name, "pools": [pool]}, name)


def question(*clusters: Cluster, layers: int, **pins: int | str | bool) -> PoolsProblem:
    """Eight samples of a small dense decoder over the pools, in the native runtime."""
    config = {
        "model_type": "llama",
        "hidden_size": 256,
        "intermediate_size": 704,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "vocab_size": 512,
        "max_position_embeddings": 256,
        "tie_word_embeddings": False,
    }
    return complete_pools_problem(
        model_from_data(config, "tiny-llama", "tests"),
        clusters,
        Workload(global_batch_size=8, sequence_length=256),
        Constraints(pins=pins, backends=("native",)),
    )


def plan_of(problem: PoolsProblem) -> PoolsPlan:
    return assemble_pools_plan(problem, find_assignment(problem))
