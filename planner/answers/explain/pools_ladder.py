"""The cheap measurements that would settle a plan over several kinds of devices, in the order in which to make them.

First the whole pipeline in a small form on CPU ranks, which runs the emitted files and tells no time.  Then one stage
of each kind of devices by itself: a model of the stage's layers, with embedding and head, under the stage's shards.
The plan deals layers by the predicted times of a layer on each kind, so that measured over predicted, kind by kind,
tells whether the split holds.  No published run over unequal devices says how much such runs leave.
"""

from __future__ import annotations

from dataclasses import replace

from planner.answers.explain.trust_ladder import Rung, SmallerRun, plan_command, shortened_model
from planner.answers.over_pools import clusters_of
from planner.errors import DocumentInvalid, NoFeasiblePlan
from planner.plan.limits import missing
from planner.plan.plan import Plan, StagePlan
from planner.question.problem import Problem
from planner.search.estimate import estimate
from profiles.cluster import Cluster
from profiles.scaling import scale_cluster
from profiles.validation import FindingsInvalid


def pools_ladder(plan: Plan) -> tuple[Rung, ...]:
    """The rungs of a plan over several kinds of devices; none for one that does not fit."""
    if plan.status == "infeasible":
        return ()
    each, first, rungs = plan.problem.cluster.num_devices // len(plan.stages), 0, list[Rung]()
    for cluster in clusters_of(plan):
        count = cluster.num_devices // each
        rungs.append(_one_stage(plan, cluster, plan.stages[first : first + count]))
        first += count
    return (_small_form(plan), *rungs)


def _small_form(plan: Plan) -> Rung:
    return Rung(
        what="the files, in a small form on CPU ranks",
        commands=(f"meshwright run {plan.plan_id[:12]} --tiny",),
        reason="losses alone, no time",
    )


def _one_stage(plan: Plan, cluster: Cluster, stages: tuple[StagePlan, ...]) -> Rung:
    """The longest stage of a kind of devices, alone on as many of them."""
    stage = max(stages, key=lambda one: one.forward_s + one.backward_s)
    strategy = replace(plan.chosen(), pp=1, vpp=1, schedule="1f1b", microbatch_group_size=0)
    devices = strategy.world_size
    what = f"stage {stage.stage} alone, on {devices:,} devices of {cluster.name}"
    model = shortened_model(plan.problem.model, max(stage.layers, len(plan.problem.model.layer_runs)))
    constraints = plan.problem.constraints.model_copy(
        update={"pins": {}, "forbids": (), "max_step_time_s": None, "backends": (plan.backend,)}
    )
    try:
        question = Problem(
            model=model,
            cluster=scale_cluster(cluster, devices),
            workload=plan.problem.workload,
            constraints=constraints,
        )
        # Overlaps are the back-end's own for one stage; with pipelines it has others.
        said = [name for name in strategy.to_dict() if not name.startswith("overlap_")]
        found = estimate(question, strategy, given=said, relief="where_needed")
    except (DocumentInvalid, FindingsInvalid, NoFeasiblePlan) as error:
        return Rung(what=what, reason=error.what)
    if found.status == "infeasible":
        lacks = "; ".join(missing(found)) or "a limit is broken"
        return Rung(what=what, reason=f"{lacks}: alone it holds embedding and head too")
    file = f"{model.name}.json"
    run = SmallerRun(
        devices=devices,
        layers=model.num_layers,
        strategy=dict(found.strategy),
        global_batch_size=plan.problem.workload.global_batch_size,
        expected_step_time_s=found.step_time_s,
        model_file=file,
    )
    pace_ms = (stage.forward_s + stage.backward_s) * 1e3
    return Rung(
        what=what,
        run=run,
        commands=(plan_command(found, cluster.name, file),),
        reason=f"in the plan {pace_ms:.1f} ms a micro-batch",
    )
