"""The cheap measurements that would settle a plan of many devices, in the order in which to make them.

A plan beyond ``LARGE`` devices is dear to try.  Each rung runs something smaller that has the same shards: the
operators on one device, one stage, ``SIZES`` devices.  A smaller run keeps tensor, context and expert parallelism, the
micro-batch, the layers a stage and the memory relief; it has fewer stages, fewer replicas and the model's layers cut to
these stages.  Its own prediction stands beside it: measured over predicted is what the calibration will correct.

What the run leaves is taken from published scaling series (``benchmarks.scaling_series``,
``docs/explanation/scale.md``): rows beyond 512 devices, corrected by the median ratio of the smaller runs of the same
publication, model, device, precision and software; the 80 % quantile of ``|ln ratio|`` over 1.2816.  The interval after
a rung is the one that a plan with such a calibration states (``planner.predict.uncertainty``).
"""

from __future__ import annotations

import math
from dataclasses import replace

from pydantic import Field

from planner.answers.explain.leaning import leaning_view
from planner.backends.asked import physics_of
from planner.errors import DocumentInvalid, NoFeasiblePlan
from planner.model.spec import LayerRun, ModelSpec
from planner.plan.limits import missing
from planner.plan.plan import Plan
from planner.predict.coverage.coverage import MEASURED_SIGMA
from planner.predict.uncertainty import step_interval_s
from planner.question.problem import Problem, Workload
from planner.question.sample import sample_text
from planner.search.estimate import estimate
from planner.search.pin_conflict import value_word
from planner.strategy.strategy import Strategy
from profiles.document import Document
from profiles.scaling import scale_cluster
from profiles.validation import FindingsInvalid

LARGE = 512
"""Devices beyond which a plan gets a ladder."""
SIZES = (64, 512)
LEFT_BY_A_RUN = {8: 0.039, 64: 0.022, 512: 0.016}
"""Spread that was left beyond 512 devices after runs of at most so many devices: 8, 48 and 52 runs of NeMo on H100
(dgxc-benchmarking), for which 0.08 was left before (see module); no other publication has both sizes."""


class SmallerRun(Document):
    """A run with the shards of the plan on fewer devices."""

    devices: int
    layers: int
    strategy: dict[str, object]
    global_batch_size: int
    expected_step_time_s: float = Field(description="its own prediction; measured over this is what gets corrected")
    model_file: str = Field(description="name of the shortened model's document, which `--ladder FOLDER` writes")


class Rung(Document):
    """One measurement, and what the plan's interval would be after it."""

    what: str
    run: SmallerRun | None = Field(default=None, exclude_if=lambda value: value is None)
    commands: tuple[str, ...] = ()
    interval_s: tuple[float, float] | None = Field(
        default=None, description="80 % interval of the plan's step time afterwards, as a plan would state it"
    )
    left_in_published_runs: float | None = Field(
        default=None,
        exclude_if=lambda value: value is None,
        description="spread of ln(measured / predicted) that such runs left beyond 512 devices in published series",
    )
    reason: str = Field(default="", description="why this rung cannot be had for this plan, or what to hold it against")


def trust_ladder(plan: Plan) -> tuple[Rung, ...]:
    """The rungs of a plan beyond ``LARGE`` devices, cheapest first; none for a smaller one or one that does not fit."""
    if plan.chosen().world_size <= LARGE or plan.status == "infeasible":
        return ()
    stage = _replica_devices(plan.chosen())
    sizes = (stage, *(size for size in SIZES if size > stage))
    return (_operators(plan), *(_smaller(plan, size, of_stage=size == stage) for size in sizes))


def shortened_model(model: ModelSpec, layers: int) -> ModelSpec:
    """The model cut to ``layers`` layers, each run of equal layers to its share and to no fewer than one."""
    counts = [max(1, math.floor(run.count * layers / model.num_layers)) for run in model.layer_runs]
    longest = max(range(len(counts)), key=lambda index: counts[index])
    counts[longest] = max(1, counts[longest] + layers - sum(counts))
    runs = tuple(LayerRun(kind=run.kind, count=count) for run, count in zip(model.layer_runs, counts, strict=True))
    return model.model_copy(update={"name": f"{model.name}-{sum(counts)}-layers", "layer_runs": runs})


def _replica_devices(strategy: Strategy) -> int:
    """Devices of one stage with the fewest replicas that its experts allow."""
    return strategy.tp * strategy.cp * _least_dp(strategy)


def _least_dp(strategy: Strategy) -> int:
    """The smallest data parallelism over which the experts still divide, at least what one batch has."""
    experts = strategy.ep * strategy.etp
    inner = strategy.tp * strategy.cp
    return math.lcm(experts, inner) // inner


def _operators(plan: Plan) -> Rung:
    view = leaning_view(plan, rows=8)
    measured = {**view.input_sigma, "compute": MEASURED_SIGMA}
    commands = tuple(line for line in view.commands if not line.startswith("torchrun"))
    return Rung(
        what="the operators of one layer, on one device",
        commands=commands or ("meshwright profile measure",),
        interval_s=_narrower(plan, _interval(plan, measured, None)),
    )


def _smaller(plan: Plan, size: int, *, of_stage: bool) -> Rung:
    what = f"one stage, on {size:,} devices" if of_stage else f"{size:,} devices"
    strategy = plan.chosen()
    least = _least_dp(strategy)
    inner = strategy.tp * strategy.cp
    # As many stages as the devices can hold.
    stages = range(1 if of_stage else strategy.pp, 0, -1)
    pp = next((count for count in stages if size % (inner * least * count) == 0), None)
    if pp is None:
        return Rung(what=what, reason=f"tp, cp and the experts need a multiple of {inner * least:,} devices")
    dp = size // (inner * pp)
    shorter = _shorter(plan, strategy, pp, dp)
    layers = max(len(plan.problem.model.layer_runs), round(plan.problem.model.num_layers / strategy.pp * pp))
    model = shortened_model(plan.problem.model, layers)
    batch = shorter.global_batch_size
    try:
        found = estimate(_question(plan, model, size, batch), shorter, relief="where_needed")
    except (DocumentInvalid, FindingsInvalid, NoFeasiblePlan) as error:
        return Rung(what=what, reason=error.what)
    if found.status == "infeasible":
        lacks = "; ".join(missing(found)) or "a limit is broken"
        return Rung(what=what, reason=f"{lacks}: fewer replicas share what the plan's share")
    file = f"{model.name}.json"
    run = SmallerRun(
        devices=size,
        layers=model.num_layers,
        strategy=dict(found.strategy),
        global_batch_size=batch,
        expected_step_time_s=found.step_time_s,
        model_file=file,
    )
    left = LEFT_BY_A_RUN[min(bound for bound in LEFT_BY_A_RUN if size <= bound or bound == max(LEFT_BY_A_RUN))]
    return Rung(
        what=what,
        run=run,
        commands=_commands(plan, found, file),
        interval_s=_narrower(plan, _interval(plan, None, left)),
        left_in_published_runs=left,
    )


def _shorter(plan: Plan, strategy: Strategy, pp: int, dp: int) -> Strategy:
    """The plan's strategy with ``pp`` stages and ``dp`` replicas; micro-batches in proportion to the stages."""
    interleaved = pp > 1 and strategy.vpp > 1
    count = max(pp, round(strategy.num_microbatches * pp / strategy.pp))
    count = math.ceil(count / pp) * pp if interleaved else count
    replicate = math.gcd(dp, strategy.dp_replicate)
    return replace(
        strategy,
        pp=pp,
        vpp=strategy.vpp if interleaved else 1,
        schedule=strategy.schedule if interleaved or (pp > 1 and strategy.vpp == 1) else "1f1b",
        microbatch_group_size=pp if interleaved and strategy.microbatch_group_size else 0,
        num_microbatches=count,
        dp_replicate=replicate,
        dp_shard=dp // replicate,
    )


def _question(plan: Plan, model: ModelSpec, devices: int, batch: int) -> Problem:
    problem = plan.problem
    cluster = scale_cluster(problem.cluster, devices)
    constraints = problem.constraints.model_copy(
        update={"pins": {}, "forbids": (), "max_step_time_s": None, "backends": (plan.backend,)}
    )
    workload = problem.workload.model_copy(update={"global_batch_size": batch})
    return problem.model_copy(
        update={"model": model, "cluster": cluster, "workload": workload, "constraints": constraints}
    )


def plan_command(found: Plan, cluster: str, file: str) -> str:
    """The command that plans a smaller run on devices of a cluster, for the model in ``file``, and writes its files."""
    problem = found.problem
    pins = " ".join(
        f"--pin {name}={value_word(value)}"
        for name, value in found.chosen().to_dict().items()
        if name in ("tp", "sp", "cp", "ep", "etp", "pp", "vpp", "zero_stage", "recompute", "micro_batch_size")
    )
    return (
        f"meshwright plan --model {file} --cluster {cluster} --devices {problem.cluster.num_devices}"
        f" --global-batch-size {problem.workload.global_batch_size} {_length(problem.workload)}"
        f" --backend {found.backend} {pins} --emit {found.backend} --out {problem.cluster.num_devices}-devices"
    )


def _commands(plan: Plan, found: Plan, file: str) -> tuple[str, ...]:
    strategy = found.chosen()
    cluster, device = plan.problem.cluster.name, plan.problem.cluster.pools[0].device.name
    spelled = ",".join(
        f"{short}={getattr(strategy, name)}"
        for short, name in (("tp", "tp"), ("cp", "cp"), ("pp", "pp"), ("ep", "ep"), ("mbs", "micro_batch_size"))
    )
    return (
        plan_command(found, cluster, file),
        f"meshwright profile import LOGS --device {device}",
        f"meshwright profile calibrate --model {file} --cluster {cluster} --strategy {spelled}"
        f" --backend {plan.backend}",
        f"meshwright plan --model {plan.problem.model.name} --cluster {cluster}"
        f" --devices {plan.problem.cluster.num_devices} --global-batch-size {plan.problem.workload.global_batch_size}"
        f" {_length(plan.problem.workload)} --backend {plan.backend} --calibration ID",
    )


def _length(workload: Workload) -> str:
    """The flag that says how long a sample is."""
    if workload.sample is not None:
        return f"--sample {sample_text(workload.sample)}"
    return f"--sequence-length {workload.sequence_length}"


def _interval(plan: Plan, inputs: dict[str, float] | None, left: float | None) -> tuple[float, float]:
    studied = physics_of(plan).spread_at(
        plan.chosen().world_size,
        experts=plan.problem.model.num_experts,
        traced=plan.problem.model.traced is not None,
        breakdown_s=plan.breakdown_s,
    )
    return step_interval_s(plan.breakdown_s, inputs, left, studied_sigma=studied)


def _narrower(plan: Plan, found: tuple[float, float]) -> tuple[float, float]:
    """No measurement makes a plan less sure: the found interval, inside the one that the plan has."""
    low, high = plan.step_time_interval_s
    return max(low, found[0]), min(high, found[1])
