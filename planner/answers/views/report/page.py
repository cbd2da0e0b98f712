"""A plan for somebody without a server: one HTML file, no scripts, nothing from elsewhere.

Light or dark follows the reader's system.  Every drawing has a sentence, and stands beside the table that says the same
in numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from planner.answers.explain.why import Explanation, explain
from planner.answers.views.report.drawings import memory_bars, pipeline, step_bar
from planner.answers.views.report.sheet import SHEET
from planner.answers.views.step import step_view
from planner.answers.views.words import count, gib, money, percent, seconds, short_id
from planner.backends.registry import names_with_files
from planner.plan.plan import Plan
from planner.plan.recommendation import UNSEARCHED, back_ends_words, is_another, recommendation_sentence
from planner.plan.relief import offload_words
from planner.predict.memory.fit_chance import chance_words
from planner.predict.step_terms import term_words, told_terms
from planner.strategy.fields import told_fields, value_words
from planner.version import __version__
from profiles.html_page import PageTable, bullets, table_markup, whole_page


def report_page(plan: Plan) -> str:
    """The whole page of a plan.  Raises DocumentInvalid for a plan whose schedule cannot be run."""
    explanation = explain(plan)
    title = f"{plan.problem.model.name} on {plan.problem.cluster.num_devices:,} devices"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="said">{escape(_verdict(plan))}</p>',
        _facts(plan),
        "<h2>Why this plan</h2>",
        bullets(map(escape, explanation.sentences)),
        *_time(plan),
        *_memory(plan),
        *_back_ends(plan),
        *_others(plan, explanation),
        *_behind(plan),
    ]
    foot = f"<footer>Meshwright {escape(__version__)}, plan <code>{plan.plan_id}</code></footer>"
    return whole_page(title, SHEET, (*parts, foot))


def _verdict(plan: Plan) -> str:
    if is_another(plan):
        return recommendation_sentence(plan)
    if plan.status == "optimal":
        return "Proved best in the searched space."
    if plan.status == "infeasible":
        return "This strategy does not fit."
    if plan.bound is None:
        return UNSEARCHED
    return f"Feasible: no plan is more than {percent(plan.bound.gap)} faster."


def _facts(plan: Plan) -> str:
    low_s, high_s = plan.step_time_interval_s
    workload, strategy, bound = plan.problem.workload, plan.chosen(), plan.bound
    facts = [
        ("Step time", f"{seconds(plan.step_time_s)} (80 % interval {seconds(low_s)} to {seconds(high_s)})"),
        ("Tokens a second", f"{count(plan.tokens_per_s)}, {count(plan.tokens_per_s_per_device)} a device"),
        ("Model FLOPs utilization", percent(plan.model_flops_utilization)),
        ("Peak memory", f"{gib(plan.peak_memory_bytes)} of {gib(plan.memory_limit_bytes)} usable"),
        *([] if plan.fits_probability is None else [("Chance to fit", chance_words(plan.fits_probability))]),
        *([("Lower bound", f"{seconds(bound.step_time_s)} (gap {percent(bound.gap)})")] if bound else []),
        ("Strategy", _strategy(plan)),
        ("Micro-batches", f"{strategy.num_microbatches:,} of {strategy.micro_batch_size:,}"),
        (
            "Workload",
            f"{workload.global_batch_size:,} sequences of {workload.sequence_length:,} tokens, {workload.precision}",
        ),
        ("Back-end", f"{plan.backend} {plan.release}".strip()),
        ("Cluster", f"{plan.problem.cluster.name}, {plan.problem.cluster.pools[0].device.name}"),
        ("Inputs", _inputs(plan)),
    ]
    if plan.cost_per_step is not None:
        facts.append(("Cost", f"{money(plan.cost_per_step)} a step"))
    rows = "\n".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts)
    return f"<dl>\n{rows}\n</dl>"


def _strategy(plan: Plan) -> str:
    from planner.backends.emission.describe import plan_strategy_words

    return plan_strategy_words(plan)


def _inputs(plan: Plan) -> str:
    shares = plan.provenance.get("time_by_input") or {"datasheet": 1.0}
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return "time from " + ", ".join(f"{name} {percent(share)}" for name, share in ordered)


def _time(plan: Plan) -> Iterator[str]:
    terms = told_terms(plan.breakdown_s)
    total = sum(value for _, value in terms) or 1.0
    yield "<h2>Where the step goes</h2>"
    yield step_bar([(term_words(term), value) for term, value in terms])
    rows = [(term_words(term), seconds(value), percent(value / total)) for term, value in terms]
    yield table_markup(PageTable("Terms of the step", ("term", ">time", ">share"), rows))
    if plan.chosen().pp > 1:
        step = step_view(plan)
        yield "<h2>Pipeline</h2>"
        yield pipeline(step)
        idle = [
            (str(rank), seconds(busy / 1e9), seconds(bubble / 1e9), percent(bubble / step.makespan_ns))
            for rank, (busy, bubble) in enumerate(zip(step.busy_ns, step.bubble_ns, strict=True))
        ]
        yield table_markup(
            PageTable("Work and idle time of every rank", (">rank", ">work", ">idle", ">idle share"), idle)
        )


def _memory(plan: Plan) -> Iterator[str]:
    yield "<h2>Memory by stage</h2>"
    yield memory_bars(plan)
    names = ("weights", "gradients", "optimizer", "activations", "buffers", "total")
    rows = [
        (
            str(stage.stage),
            f"{stage.layers:,}",
            stage.recompute.policy,
            offload_words(stage),
            *(gib(getattr(stage.peak_memory_bytes, name)) for name in names),
        )
        for stage in plan.stages
    ]
    columns = (">stage", ">layers", "recompute", "offload", *(f">{name}" for name in names))
    yield table_markup(PageTable(f"Peak of every stage; {gib(plan.memory_limit_bytes)} usable", columns, rows))


def _back_ends(plan: Plan) -> Iterator[str]:
    """Every back-end that was asked, and what none of them can run yet."""
    if not plan.backends:
        return
    yield "<h2>Back-ends</h2>"
    rows = [
        (
            f"{each.backend} {each.release}".strip(),
            "" if each.step_time_s is None else seconds(each.step_time_s),
            "" if each.slower_by is None else percent(each.slower_by, signed=True),
            "" if each.gap is None else percent(each.gap),
            "" if each.peak_memory_bytes is None else gib(each.peak_memory_bytes),
            each.reason or "",
        )
        for each in plan.backends
    ]
    columns = ("back-end", ">step", ">slower", ">gap", ">peak", "why not")
    words = back_ends_words(plan)
    yield table_markup(PageTable(f"{words[0].upper()}{words[1:]}", columns, rows))
    free = plan.unrestricted
    if free is not None:
        faster = f"No back-end can run yet: {seconds(free.step_time_s)}, {percent(free.faster_by)} faster. {free.why}."
        yield f"<p>{escape(faster)}</p>"


def _others(plan: Plan, explanation: Explanation) -> Iterator[str]:
    if plan.alternatives:
        yield "<h2>Runners-up</h2>"
        rows = [
            (
                seconds(each.step_time_s),
                percent(each.slower_by, signed=True),
                gib(each.peak_memory_bytes),
                ", ".join(f"{field}={value_words(each.strategy.get(field))}" for field in told_fields(each.differs_in)),
            )
            for each in plan.alternatives
        ]
        yield table_markup(
            PageTable("Solved, not proved best of their kind", (">step", ">slower", ">peak", "differs in"), rows)
        )
    if explanation.neighbours:
        yield "<h2>One change away</h2>"
        around = [
            (
                each.move,
                each.outcome.replace("_", " "),
                "" if each.slower_by is None else percent(each.slower_by, signed=True),
                "" if each.peak_memory_bytes is None else gib(each.peak_memory_bytes),
                each.reason,
            )
            for each in explanation.neighbours
        ]
        yield table_markup(PageTable("Estimated", ("change", "outcome", ">slower", ">peak", "reason"), around))


def _behind(plan: Plan) -> Iterator[str]:
    search = plan.search
    looked_at = f"{search.enumerated:,} strategies enumerated, {search.bounded:,} bounded, {search.evaluated:,} solved"
    yield "<h2>What was searched</h2>"
    yield f"<p>{escape(looked_at)} exactly. {escape(search.proof)}</p>"
    ruled_out = sorted({**search.pruned, **search.refused}.items(), key=lambda item: -item[1])
    if ruled_out:
        yield table_markup(
            PageTable("Ruled out", ("reason", ">strategies"), [(name, f"{n:,}") for name, n in ruled_out])
        )
    if plan.assumptions:
        yield "<h2>Assumptions</h2>"
        yield bullets(map(escape, plan.assumptions))
    yield "<h2>Do the same again</h2>"
    names = names_with_files()
    backend = plan.backend if plan.backend in names else names[0]
    yield f"<p><code>meshwright emit {short_id(plan.plan_id)} --backend {backend} --out out</code></p>"
