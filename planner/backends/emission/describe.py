"""``PLAN.md``, for a person to read beside the files: what, why, expected numbers, how to launch."""

from __future__ import annotations

from collections.abc import Sequence

from planner.backends.emission.emission import Emission
from planner.plan.communication_bill import TRAFFIC_COLUMNS, busiest_stages, communication_bill, traffic_words
from planner.plan.plan import ChunkPlan, Plan, StagePlan
from planner.plan.recommendation import UNSEARCHED, is_another, proved_words
from planner.plan.relief import asked_layers, relieves_every_layer
from planner.predict.memory.fit_chance import chance_words
from planner.predict.physics.physics import Physics
from planner.predict.step_terms import term_words, told_terms
from planner.strategy.fields import told_fields, value_words
from planner.strategy.relief_layers import ReliefLayers, relief_word
from planner.strategy.strategy import Strategy
from profiles.errors import ProfileMissing

_GIB = 2**30
_CELL = str.maketrans({"|": "\\|", "\n": " "})


def plan_markdown(emission: Emission, physics: Physics) -> str:
    """Markdown for people; nothing reads it back."""
    plan = emission.plan
    parts = (
        _what(plan, emission),
        _why(plan),
        _stages(plan),
        _sent(plan, physics),
        bullet_section("Assumptions", (*plan.assumptions, *emission.written.assumptions)),
        _launch(emission),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _software_words(emission: Emission) -> str:
    """``megatron 0.19.2``, and the packages that its files are written for."""
    packages = ", ".join(f"{name} {version}" for name, version in emission.written.versions.items())
    return f"{emission.backend} {emission.written.version}".strip() + (f" ({packages})" if packages else "")


def _what(plan: Plan, emission: Emission) -> str:
    problem, strategy = plan.problem, plan.chosen()
    workload = problem.workload
    low_s, high_s = plan.step_time_interval_s
    rows = (
        ("back-end", _software_words(emission)),
        ("plan", f"`{plan.plan_id}`"),
        ("strategy", plan_strategy_words(plan)),
        ("batch", f"{workload.global_batch_size} samples x {workload.sequence_length} tokens, {workload.precision}"),
        ("expected step time", f"{plan.step_time_s:.3f} s ({low_s:.3f} .. {high_s:.3f} s)"),
        ("expected rate", f"{plan.tokens_per_s_per_device:.0f} tokens/s a device"),
        ("model FLOPs utilisation", f"{100 * plan.model_flops_utilization:.1f} %"),
        (
            "peak memory",
            f"{plan.peak_memory_bytes / _GIB:.1f} GiB of {plan.memory_limit_bytes / _GIB:.1f} GiB usable a device",
        ),
        *([] if plan.fits_probability is None else [("chance to fit", chance_words(plan.fits_probability))]),
    )
    title = f"# {problem.model.name} on {strategy.world_size} devices of {problem.cluster.name}"
    return f"{title}\n\n" + markdown_table(("", ""), rows)


def plan_strategy_words(plan: Plan) -> str:
    """The strategy of a plan on one line; where not every layer recomputes or offloads, with the word for those."""
    return strategy_words(plan.chosen(), "every" if relieves_every_layer(plan) else asked_layers(plan))


def strategy_words(strategy: Strategy, layers: ReliefLayers = "every") -> str:
    """The strategy on one line, defaults left out; ``layers``: which of them recompute or offload."""
    words = [f"tp={strategy.tp}{'+sp' if strategy.sp else ''}", f"pp={strategy.pp}"]
    words += [f"vpp={strategy.vpp}"] if strategy.vpp > 1 else []
    words += [f"cp={strategy.cp} ({strategy.cp_kind})"] if strategy.cp > 1 else []
    words += [f"ep={strategy.ep}", f"etp={strategy.etp}"] if strategy.ep > 1 or strategy.etp > 1 else []
    words += [f"dp={strategy.dp_replicate}x{strategy.dp_shard}" if strategy.dp_replicate > 1 else f"dp={strategy.dp}"]
    words += [
        f"zero={strategy.zero_stage}",
        f"{strategy.num_microbatches} micro-batch{'es' if strategy.num_microbatches > 1 else ''}"
        f" of {strategy.micro_batch_size}",
    ]
    words += [f"schedule {strategy.schedule}"] if strategy.pp > 1 else []
    recompute = f"recompute {relief_word('recompute', strategy.recompute, layers)}"
    words += [recompute + (f" ({', '.join(strategy.recompute_modules)})" if strategy.recompute_modules else "")]
    words += ["optimizer offload"] if strategy.optimizer_offload else []
    where = relief_word("activation_offload", strategy.activation_offload, layers)
    words += [f"activation offload{'' if where is True else f' {where}'}"] if strategy.activation_offload else []
    return ", ".join(words)


def _why(plan: Plan) -> str:
    lines = [f"## Why\n\n{_proof(plan)}"]
    total = sum(plan.breakdown_s.values())
    shares = [
        (term_words(name), f"{seconds:.4f}", f"{100 * seconds / total:.1f} %" if total else "")
        for name, seconds in told_terms(plan.breakdown_s)
    ]
    lines += [markdown_table(("where the step goes", "s", "share"), shares)] if shares else []
    others = [
        (
            f"{other.step_time_s:.3f}",
            f"{100 * other.slower_by:.1f} %",
            ", ".join(f"{name}={value_words(other.strategy.get(name))}" for name in told_fields(other.differs_in)),
        )
        for other in plan.alternatives
    ]
    lines += [markdown_table(("runner-up step time (s)", "slower by", "differs in"), others)] if others else []
    return "\n\n".join(lines)


def _proof(plan: Plan) -> str:
    """How good the plan is; an estimate of a given strategy, searched for by nobody, bounds nothing."""
    if plan.bound is None:
        return UNSEARCHED
    if plan.status == "infeasible":
        return "The plan does not fit."
    status = "proved best in the searched space" if plan.status == "optimal" else "feasible, not proved best"
    if plan.fastest is not None and is_another(plan):
        status = f"recommended beside the fastest one, {proved_words(plan.fastest)} ({plan.fastest.price})"
    bound = f"lower bound {plan.bound.step_time_s:.3f} s, gap {100 * plan.bound.gap:.2f} %"
    return f"The plan is {status}: {bound}. {_sentence(plan.search.proof)}".rstrip()


def _stages(plan: Plan) -> str:
    rows = [
        (
            str(stage.stage),
            "; ".join(chunk_words(chunk) for chunk in stage.chunks),
            _recompute_words(stage),
            f"{stage.forward_s * 1e3:.2f} / {stage.backward_s * 1e3:.2f}",
            f"{stage.peak_memory_bytes.total / _GIB:.1f}",
            f"{stage.peak_memory_bytes.weights / _GIB:.1f} / {stage.peak_memory_bytes.optimizer / _GIB:.1f}"
            f" / {stage.peak_memory_bytes.activations / _GIB:.1f}",
        )
        for stage in plan.stages
    ]
    head = (
        "stage",
        "layers",
        "recompute and offload",
        "forward / backward of a micro-batch (ms)",
        "peak (GiB)",
        "weights / optimizer / activations (GiB)",
    )
    return "## Stages\n\n" + markdown_table(head, rows)


def _sent(plan: Plan, physics: Physics) -> str:
    """Payloads of one rank of the stage that sends most, by axis and collective.

    Nothing on a single device, or over several pools, of which no one network tells.
    """
    if len(plan.problem.cluster.pools) > 1:
        return ""
    try:
        rows = [traffic_words(line) for line in busiest_stages(communication_bill(plan, physics))]
    except ProfileMissing as error:
        # A plan from elsewhere may be for a precision that its device has no rate for; its files need none.
        return f"## What is sent\n\nNot counted: {error.what}."
    if not rows:
        return ""
    return "## What is sent\n\n" + markdown_table(TRAFFIC_COLUMNS, rows)


def chunk_words(chunk: ChunkPlan) -> str:
    """``embedding + layers 0-9``, for one model chunk."""
    last = chunk.first_layer + chunk.num_layers - 1
    words = ["embedding"] if chunk.has_embedding else []
    words += [f"layers {chunk.first_layer}-{last}" if chunk.num_layers > 1 else f"layer {last}"] * bool(
        chunk.num_layers
    )
    words += [f"{chunk.num_mtp_layers} MTP"] if chunk.num_mtp_layers else []
    words += ["head"] if chunk.has_head else []
    return " + ".join(words) or "nothing"


def _recompute_words(stage: StagePlan) -> str:
    recompute, offload = stage.recompute, stage.offload
    words = []
    if recompute.policy == "full":
        words.append(f"full, first {'/'.join(map(str, recompute.num_layers_per_chunk))} layers of each chunk")
    elif recompute.policy == "selective":
        words.append(f"selective: {', '.join(recompute.modules)}")
    words += ["optimizer on host"] if offload.optimizer else []
    words += [f"activations of {offload.activation_layers} layers on host"] if offload.activation_layers else []
    return "; ".join(words) or "none"


def _sentence(text: str) -> str:
    """With a capital and a full stop; empty stays empty."""
    return f"{text[0].upper()}{text[1:].rstrip('.')}." if text else ""


def bullet_section(title: str, lines: tuple[str, ...]) -> str:
    """A heading with a line each; empty without lines."""
    return f"## {title}\n\n" + "\n".join(f"- {line}" for line in lines) if lines else ""


def _launch(emission: Emission) -> str:
    lines = ["## Launch", f"In this directory:\n\n```\n{emission.launch_command}\n```"]
    lines += ["\n".join(f"- {note}" for note in emission.launch_notes)] if emission.launch_notes else []
    if emission.written.environment:
        rows = [(f"`{name}`", f"`{value}`") for name, value in sorted(emission.written.environment.items())]
        lines += ["The launcher sets:", markdown_table(("variable", "value"), rows)]
    return "\n\n".join(lines)


def markdown_table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    body = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cell.translate(_CELL) for cell in row) + " |" for row in body)
