"""The plan of one back-end that a plan over several pools is: what its launch files hold, and its trainer reads.

Ranks fill the pools in the order of the stages, so the cluster of such a plan lists the nodes that are used in the
order of their ranks: whole nodes of a pool, then the node of which a part is used.
"""

from __future__ import annotations

from itertools import groupby

from planner.backends.asked import the_software
from planner.plan.plan import (
    ChunkPlan,
    Plan,
    SearchReport,
    StageOffload,
    StagePlan,
    StageRecompute,
)
from planner.predict.uncertainty import step_interval_s
from planner.question.problem import Problem
from planner.search.pools.plan import PoolsPlan, PoolStage
from planner.strategy.strategy import Strategy
from profiles.cluster import Cluster, Pool
from solver.check import CheckFailed

TERMS = {"slowest_stage": "compute", "pp_bubble": "pp_bubble", "pp_send": "pp_send", "late": "dp"}
"""Terms of a step for those of a plan over pools: communication inside a stage is in the stage's own time."""


def launchable_plan(plan: PoolsPlan) -> Plan:
    """The plan as its back-end runs it.  Raises CheckFailed for one that no back-end runs."""
    if plan.strategy is None:
        raise CheckFailed("a plan for study has no launch files")
    problem, strategy = plan.problem, Strategy.from_dict(plan.strategy)
    cluster = used_cluster(plan)
    if cluster.num_devices != strategy.world_size:
        raise CheckFailed(f"{strategy.world_size} ranks on {cluster.num_devices} devices")
    software = the_software(problem.of_pool(0, problem.workload.global_batch_size))
    breakdown_s = {TERMS[name]: seconds for name, seconds in plan.breakdown_s.items()}
    peak = _peak_flops_per_s(cluster, problem.workload.matmul_format)
    spread = software.release.physics.spread_at(
        strategy.world_size,
        experts=problem.model.num_experts,
        traced=problem.model.traced is not None,
        breakdown_s=breakdown_s,
    )
    return Plan(
        problem=Problem(
            model=problem.model, cluster=cluster, workload=problem.workload, constraints=problem.constraints
        ),
        backend=plan.backend,
        release=plan.release,
        status=plan.status,
        strategy=plan.strategy,
        stages=tuple(_stage(stage) for stage in plan.stages),
        step_time_s=plan.step_time_s,
        step_time_interval_s=step_interval_s(breakdown_s, studied_sigma=spread),
        tokens_per_s=plan.tokens_per_s,
        tokens_per_s_per_device=plan.tokens_per_s / strategy.world_size,
        model_flops_per_step=plan.model_flops_per_step,
        model_flops_utilization=plan.model_flops_per_step / (plan.step_time_s * peak),
        peak_memory_bytes=plan.peak_memory_bytes,
        memory_limit_bytes=plan.memory_limit_bytes,
        fits_probability=plan.fits_probability,
        breakdown_s=breakdown_s,
        pipeline_hop_s=max(stage.hop_s for stage in plan.stages),
        lower_bound_s=plan.lower_bound_s,
        gap=plan.gap,
        search=SearchReport(
            enumerated=plan.search.policies,
            pruned={},
            bounded=plan.search.microbatch_choices,
            evaluated=plan.search.solved,
            proof=plan.search.proof,
        ),
        assumptions=plan.assumptions,
        provenance=plan.provenance,
    )


def used_cluster(plan: PoolsPlan) -> Cluster:
    """The nodes that are used, in the order of the ranks.  Raises CheckFailed where stages of a pool are apart."""
    pools: list[Pool] = []
    at = dict(zip(plan.problem.pool_names(), plan.problem.clusters, strict=True))
    runs = [(name, sum(stage.devices for stage in stages)) for name, stages in groupby(plan.stages, _pool_name)]
    if len(runs) > len({name for name, _ in runs}):
        raise CheckFailed("the stages of a pool do not follow each other")
    for name, devices in runs:
        pool = at[name].pools[0]
        nodes, rest = divmod(devices, pool.devices_per_node)
        named = pool.model_copy(update={"name": name})
        pools += [named.model_copy(update={"num_nodes": nodes})] if nodes else []
        pools += [named.model_copy(update={"num_nodes": 1, "devices_per_node": rest})] if rest else []
    return Cluster(name=" + ".join(name for name, _ in runs), pools=tuple(pools))


def _pool_name(stage: PoolStage) -> str:
    return stage.pool


def _stage(stage: PoolStage) -> StagePlan:
    chunk = ChunkPlan(
        chunk=stage.stage,
        first_layer=stage.first_layer,
        num_layers=stage.layers,
        has_embedding=stage.has_embedding,
        has_head=stage.has_head,
    )
    counts = (stage.recompute_layers,) if stage.recompute != "none" else ()
    return StagePlan(
        stage=stage.stage,
        layers=stage.layers,
        chunks=(chunk,),
        recompute=StageRecompute(policy=stage.recompute, modules=stage.recompute_modules, num_layers_per_chunk=counts),
        offload=StageOffload(optimizer=stage.optimizer_offload, activation_layers=stage.activation_offload_layers),
        peak_memory_bytes=stage.peak_memory_bytes,
        host_memory_bytes=stage.host_memory_bytes,
        parameters_per_device=stage.parameters_per_device,
        forward_s=stage.forward_s,
        backward_s=stage.microbatch_s - stage.forward_s,
        weight_gradient_s=0.0,
    )


def _peak_flops_per_s(cluster: Cluster, precision: str) -> float:
    """Of all used devices together."""
    return sum(pool.num_devices * pool.device.peak_flops_per_s[precision] for pool in cluster.pools)
