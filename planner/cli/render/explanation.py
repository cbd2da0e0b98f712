"""An explanation for people: sentences first, then causes, memory and neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from planner.answers.explain.neighbours import Neighbour
from planner.answers.explain.trust_ladder import Rung
from planner.answers.explain.why import Explanation
from planner.answers.explain.why_not import WhyNot
from planner.answers.views.words import gib, percent, seconds, short_id
from planner.cli.render.comparison import bytes_table, seconds_table
from planner.cli.render.plan import strategy_line
from planner.cli.render.tables import bullets, facts, heading, table
from planner.cli.render.words import bar
from planner.plan.communication_bill import TRAFFIC_COLUMNS, busiest_stages, traffic_words
from planner.plan.plan import Plan
from planner.predict.step_terms import term_words

if TYPE_CHECKING:
    from rich.console import RenderableType

BAR_WIDTH = 24


def explanation_report(plan: Plan, explanation: Explanation) -> Iterator[RenderableType]:
    """Why the plan is what it is."""
    yield Text(f"PLAN {short_id(plan.plan_id)}  {explanation.headline}", style="bold")
    yield Text(f"  {strategy_line(plan)}\n")
    yield bullets(explanation.sentences)
    yield heading("What the step pays for")
    yield table(
        "",
        ("term", ">time", ">share", "|", "from", "because"),
        [
            (
                term_words(cause.term),
                seconds(cause.seconds),
                percent(cause.share),
                bar(cause.share, BAR_WIDTH),
                cause.choice,
                cause.because,
            )
            for cause in explanation.causes
        ],
    )
    memory = explanation.memory
    yield heading(f"What fills the worst device (stage {memory.stage}, limit {gib(memory.limit_bytes)})")
    yield table(
        "",
        ("term", ">size", ">of limit", "|"),
        [
            (term, gib(size), percent(size / memory.limit_bytes), bar(size / memory.limit_bytes, BAR_WIDTH))
            for term, size in sorted(memory.terms_bytes.items(), key=lambda item: -item[1])
        ],
    )
    if explanation.communication:
        yield heading("What is sent")
        columns = (*TRAFFIC_COLUMNS[:2], *(f">{name}" for name in TRAFFIC_COLUMNS[2:]))
        yield table("", columns, [traffic_words(line) for line in busiest_stages(explanation.communication)])
    if explanation.neighbours:
        yield heading("One move away")
        yield table(
            "", ("move", ">step", ">against plan", ">peak", "verdict"), [_row(each) for each in explanation.neighbours]
        )
    if explanation.ladder:
        yield from _ladder(plan, explanation.ladder)


def _ladder(plan: Plan, rungs: Sequence[Rung]) -> Iterator[RenderableType]:
    """What would settle a plan of many devices, cheapest first."""
    yield heading("What would settle it, cheapest first")
    yield table(
        "",
        ("measure", ">layers", ">predicted", ">plan's interval then (80 %)", ">left in published runs"),
        [
            (
                each.what,
                str(each.run.layers) if each.run else "",
                seconds(each.run.expected_step_time_s) if each.run else "",
                f"{seconds(each.interval_s[0])} to {seconds(each.interval_s[1])}" if each.interval_s else each.reason,
                "" if each.left_in_published_runs is None else f"± {percent(each.left_in_published_runs)}",
            )
            for each in rungs
        ],
    )
    low, high = plan.step_time_interval_s
    yield Text(
        f"The plan's interval today: {seconds(low)} to {seconds(high)}. The runs keep the shards of a stage; their"
        " models are cut to the layers shown (--ladder FOLDER writes them).\n"
    )
    ran = [each for each in rungs if each.run is not None]
    yield bullets([each.commands[0] for each in rungs if each.commands])
    if ran and ran[-1].commands[1:]:
        yield Text("After a run, here for the last one:", style="bold")
        yield bullets(ran[-1].commands[1:])


def why_not_report(plan: Plan, answer: WhyNot) -> Iterator[RenderableType]:
    """Why the wished strategy is not the plan."""
    yield Text(answer.sentence, style="bold")
    if answer.already_so:
        return
    if answer.other is None:
        rows = [("rule", rule) for rule in answer.rules]
        rows += [("binding", answer.binding or "unknown")]
        rows += [("would help", relaxation) for relaxation in answer.relaxations]
        pruned = sorted(answer.pruned.items(), key=lambda item: (-item[1], item[0]))
        rows += [("pruned", ", ".join(f"{reason} {number:,}" for reason, number in pruned))] if pruned else []
        yield facts(rows)
        return
    yield facts([("plan", strategy_line(plan)), ("instead", strategy_line(answer.other))])
    yield heading("Time by term")
    yield seconds_table(answer.breakdown_s, ("plan", "instead"))
    yield heading("Memory of the worst device by term")
    yield bytes_table(answer.peak_memory_bytes, ("plan", "instead"))


def _row(each: Neighbour) -> tuple[str, str, str, str, str]:
    verdict = {
        "faster": f"faster{f', but {each.reason}' if each.reason else ''}",
        "as_fast": f"as fast{f', but {each.reason}' if each.reason else ''}",
        "slower": "slower",
        "does_not_fit": f"misses {gib(each.over_limit_bytes)} on stage {each.over_limit_stage}"
        if each.over_limit_bytes
        else each.reason or "breaks a limit",
        "illegal": each.reason,
    }[each.outcome]
    if each.step_time_s is None:
        return (each.move, "", "", "", verdict)
    peak = gib(each.peak_memory_bytes or 0)
    return (each.move, seconds(each.step_time_s), percent(each.slower_by or 0.0, signed=True), peak, verdict)
