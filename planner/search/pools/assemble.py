"""From an assignment to a plan: every stage is costed again as a single-pool plan would, then written down.

``planner.search.evaluate.stage_bill`` knows nothing of the solver's tables: a stage whose time or memory it sees
otherwise is refused (CheckFailed), never printed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from planner.backends.asked import the_software
from planner.predict.memory.fit_chance import fits_probability
from planner.predict.packed_rows import real_tokens_per_step
from planner.predict.training_flops import step_flops
from planner.search.assemble_plan import host_memory, memory_bill
from planner.search.backend_rules import BackEndRules
from planner.search.pools.alike import of_stages
from planner.search.pools.find import PoolsAnswer
from planner.search.pools.plan import PoolsPlan, PoolsSearch, PoolStage, PoolUse
from planner.search.pools.problem import PoolsProblem
from planner.search.pools.step import CostedStage, pipeline_s
from planner.search.pools.why import why
from planner.search.room_notes import room_notes
from planner.version import __version__
from solver.check import CheckFailed

TOLERANCE = 1e-9
TOLD = ("tp", "sp", "cp", "cp_kind", "ep", "etp", "dp", "dp_replicate", "micro_batch_size", "zero_stage")
"""Fields of a strategy that a stage tells."""


def assemble_pools_plan(problem: PoolsProblem, answer: PoolsAnswer) -> PoolsPlan:
    """Write the answer down as an immutable plan."""
    space, found = answer.space, answer.found
    if space is None or found is None:
        raise CheckFailed("there is no answer to write down")
    stages = _stages(problem, answer)
    workload, step_s = problem.workload, found.step_s
    tokens, flops = real_tokens_per_step(workload), step_flops(problem.model, workload)
    peak = sum(
        cluster.num_devices * cluster.pools[0].device.peak_flops_per_s.get(workload.matmul_format, 0.0)
        for cluster in problem.clusters
    )
    slowest_s = space.num_microbatches * max(stage.microbatch_s for stage in stages)
    straight_s = pipeline_s(found.costed, space.num_microbatches, hops=False)
    proved = answer.lower_bound_s >= step_s * (1 - TOLERANCE)
    bound_s = step_s if proved else answer.lower_bound_s
    gap = 1.0 - bound_s / step_s
    pools = _uses(problem, stages)
    fullest = max(stages, key=lambda stage: stage.peak_memory_bytes.total / stage.memory_limit_bytes)
    software = the_software(problem.of_pool(0, workload.global_batch_size))
    return PoolsPlan(
        problem=problem,
        backend=software.name,
        release=software.release.version,
        strategy=_in_common(problem, answer) if problem.alike else None,
        status="optimal" if proved else "feasible",
        microbatch_samples=space.samples,
        num_microbatches=space.num_microbatches,
        stages=stages,
        pools=pools,
        step_time_s=step_s,
        tokens_per_s=tokens / step_s,
        tokens_per_s_per_device=tokens / step_s / problem.num_devices,
        peak_memory_bytes=fullest.peak_memory_bytes.total,
        memory_limit_bytes=fullest.memory_limit_bytes,
        fits_probability=_chance(problem, fullest),
        model_flops_per_step=flops,
        model_flops_utilization=flops / (step_s * peak) if peak else 0.0,
        breakdown_s={
            "slowest_stage": slowest_s,
            "pp_bubble": straight_s - slowest_s,
            "pp_send": found.pipeline_s - straight_s,
            "late": found.late_s,
        },
        lower_bound_s=bound_s,
        gap=gap,
        search=_report(problem, answer),
        why=why(problem, stages, pools, space.num_microbatches, proved=proved),
        assumptions=_assumptions(problem),
        provenance={
            "software": __version__,
            "model": problem.model.content_hash(),
            "clusters": [cluster.content_hash() for cluster in problem.clusters],
            "inputs": "datasheet",
            "engine": "exact dynamic programming over stages, sub-meshes and policies with an enclosed peak",
        },
    )


def _chance(problem: PoolsProblem, stage: PoolStage) -> float:
    """That a device of the stage holds its peak."""
    at = problem.pool_names().index(stage.pool)
    backend = the_software(problem.of_pool(at, problem.workload.global_batch_size)).name
    memory_bytes = problem.clusters[at].pools[0].device.memory_bytes
    return fits_probability(memory_bytes, stage.peak_memory_bytes.total, backend)


def _stages(problem: PoolsProblem, answer: PoolsAnswer) -> tuple[PoolStage, ...]:
    if answer.found is None:
        return ()
    stages, before_s = [], 0.0
    hides = 1.0 if problem.hides_late_work else 0.0
    for index, costed in enumerate(answer.found.costed):
        stage = _stage(problem, answer, index, costed, hides * before_s)
        before_s += stage.microbatch_s
        stages.append(stage)
    return tuple(stages)


def _stage(problem: PoolsProblem, answer: PoolsAnswer, index: int, costed: CostedStage, hidden_s: float) -> PoolStage:
    found, space = answer.found, answer.space
    if found is None or space is None:
        raise CheckFailed("there is no answer to write down")
    mesh, choice, tables = costed.mesh, found.stages[index], found.tables.tables
    from_end = len(found.stages) - index
    at = (choice.option, choice.policy, tables.position(from_end))
    span = int(tables.span_class[choice.start, choice.count - 1])
    time_s, late_s = float(tables.time[(*at, span)]), float(tables.late[(*at, span)])
    _check(costed, index, time_s)
    strategy = mesh.rows.strategy(costed.row, mesh.costs.reliefs)
    used = costed.relieved if strategy.recompute != "none" else 0
    told = {name: value for name, value in strategy.to_dict().items() if name in TOLD}
    return PoolStage(
        stage=index,
        pool=problem.pool_names()[mesh.pool],
        device=problem.clusters[mesh.pool].pools[0].device.name,
        devices=mesh.devices,
        first_layer=choice.start,
        layers=choice.count,
        has_embedding=index == 0,
        has_head=from_end == 1,
        strategy=told,
        recompute=strategy.recompute if used else "none",
        recompute_modules=strategy.recompute_modules if used else (),
        recompute_layers=used,
        optimizer_offload=strategy.optimizer_offload,
        activation_offload_layers=costed.relieved if strategy.activation_offload else 0,
        in_flight_microbatches=min(from_end, space.num_microbatches),
        parameters_per_device=round(costed.bill.dense_parameters + costed.bill.expert_parameters),
        microbatch_s=time_s,
        forward_s=costed.bill.forward_s,
        late_s=late_s,
        late_shown_s=max(0.0, late_s - hidden_s),
        hop_s=costed.hop_s,
        peak_memory_bytes=memory_bill(costed.bill),
        memory_limit_bytes=int(mesh.rules.limit_bytes),
        host_memory_bytes=host_memory(costed.bill, mesh.rules.host_limit_bytes),
    )


def _in_common(problem: PoolsProblem, answer: PoolsAnswer) -> dict[str, Any]:
    """The strategy of all stages, as the back-end spells it.  Raises CheckFailed where it would refuse them."""
    if answer.found is None:
        raise CheckFailed("there is no answer to write down")
    costed, counts = answer.found.costed, tuple(stage.count for stage in answer.found.stages)
    relieving = next((stage for stage in costed if stage.relieved), costed[0])
    strategy = relieving.mesh.rows.strategy(relieving.row, relieving.mesh.costs.reliefs)
    if not relieving.relieved:
        strategy = replace(strategy, recompute="none", recompute_modules=(), activation_offload=False)
    rules = BackEndRules(problem.of_pool(costed[0].mesh.pool, problem.workload.global_batch_size))
    strategy = of_stages(rules, strategy, len(costed))
    broken = rules.messages(strategy, counts)
    if broken or answer.found.num_reliefs > 1:
        raise CheckFailed(f"{rules.software.name} does not run these stages: {'; '.join(broken) or 'unlike reliefs'}")
    return strategy.to_dict()


def _check(costed: CostedStage, index: int, time_s: float) -> None:
    bill, rules = costed.bill, costed.mesh.rules
    if not abs(bill.total_s - time_s) <= TOLERANCE * time_s:
        raise CheckFailed(f"stage {index} takes {bill.total_s} s, the table says {time_s}")
    if bill.total_bytes > rules.limit_bytes + 2.0:
        raise CheckFailed(f"stage {index} needs {bill.total_bytes} bytes of {rules.limit_bytes}")
    if bill.host_bytes > rules.host_limit_bytes * (1 + TOLERANCE):
        raise CheckFailed(f"stage {index} needs {bill.host_bytes} bytes of host memory")


def _uses(problem: PoolsProblem, stages: tuple[PoolStage, ...]) -> tuple[PoolUse, ...]:
    slowest_s = max(stage.microbatch_s for stage in stages)
    uses = []
    for name, cluster in zip(problem.pool_names(), problem.clusters, strict=True):
        here = [stage for stage in stages if stage.pool == name]
        used = sum(stage.devices for stage in here)
        busy = sum(stage.devices * stage.microbatch_s for stage in here)
        uses.append(
            PoolUse(
                pool=name,
                device=cluster.pools[0].device.name,
                devices=cluster.num_devices,
                used=used,
                stages=len(here),
                layers=sum(stage.layers for stage in here),
                busy_fraction=busy / (used * slowest_s) if used else 0.0,
            )
        )
    return tuple(uses)


def _report(problem: PoolsProblem, answer: PoolsAnswer) -> PoolsSearch:
    proved = answer.lower_bound_s >= answer.step_time_s * (1 - TOLERANCE)
    each = "number of samples at a time" + (" and sharding of all stages" if problem.alike else "")
    if proved:
        proof = f"no assignment has a shorter step: the bound of every {each} meets this plan's"
    elif answer.complete:
        proof = (
            f"no {each} has an assignment with a smaller bound; the bound looks at chains of"
            " actions, the step is simulated, and the gap is what no chain explains"
        )
    else:
        proof = "stopped when its labels or its time were spent: the bound is what was proved until then"
    return PoolsSearch(
        microbatch_choices=answer.choices,
        solved=answer.solved,
        sub_meshes=answer.sub_meshes,
        policies=answer.policies,
        labels=answer.labels,
        windows=answer.windows,
        proof=proof,
    )


def _assumptions(problem: PoolsProblem) -> tuple[str, ...]:
    order = "follow each other" if problem.consecutive else "may come in any order"
    late = (
        "what a stage does once a step hides under the drain of the stages before it, so the optimizer does not wait"
        " for a gradient norm over all stages"
        if problem.hides_late_work
        else "what a stage does once a step hides under nothing"
    )
    software = the_software(problem.of_pool(0, problem.workload.global_batch_size))
    alike = (
        f"all stages have equally many devices, the same degrees, micro-batch and kind of relief, as {software.title}"
        " runs them; ranks of a stage, and stages of a pool, are consecutive"
    )
    return (
        "operator and link times are datasheet predictions for each device",
        *([alike] if problem.alike else []),
        f"1F1B with one chunk a stage; the stages of a pool {order}; a stage lives in one pool",
        late,
        "a hop runs at the slower side's outermost network, all devices of a stage sending their share at once",
        "a stage is a part of a node that divides it, or whole nodes; context parallelism and dp_replicate are one"
        " unless pinned; with tensor parallelism the sequence is split too",
        *room_notes(problem.constraints, software),
        "every node, device and link runs at its nominal speed; no stragglers, no checkpoint or data-loading stalls",
    )
