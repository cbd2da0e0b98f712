"""The back-ends of a plan for people: a line each, fastest first, and what none of them can run yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from rich.text import Text

from planner.answers.views.words import close_seconds, percent
from planner.cli.render.tables import heading, table
from planner.plan.plan import BackEndAnswer, Plan
from planner.plan.recommendation import back_ends_words
from planner.strategy.fields import told_fields, value_words

if TYPE_CHECKING:
    from rich.console import RenderableType

DEGREES = ("tp", "cp", "ep", "etp")


def software_title(backend: str, release: str) -> str:
    """``Megatron-LM 0.19.2``; the bare names for software that is not known here any more."""
    from planner.backends.registry import software
    from planner.errors import NotFound

    try:
        return software(f"{backend}=={release}" if release else backend).title
    except NotFound:
        return f"{backend} {release}".strip()


def software_name(backend: str, release: str) -> str:
    """As ``--backend`` takes it: the release only where it is not the default one, or is not known here any more."""
    from planner.backends.registry import software
    from planner.errors import NotFound

    whole = f"{backend}=={release}" if release else backend
    try:
        return software(whole).spelled
    except NotFound:
        return whole


def back_ends(plan: Plan) -> Iterator[RenderableType]:
    """The table of all back-ends that were asked, and the line below it; nothing for a plan of one back-end."""
    if plan.backends:
        searched = any(each.strategy is not None for each in plan.backends)
        yield heading(f"Back-ends ({back_ends_words(plan)})")
        yield _table(plan.backends, searched)
    if plan.unrestricted is not None:
        yield Text(f"\nWhat no back-end can run yet: {unrestricted_line(plan)}")


def unrestricted_line(plan: Plan) -> str:
    """How much faster the whole declared space would be, in what it differs, and why that does not run."""
    free = plan.unrestricted
    if free is None:
        return ""
    fields = told_fields(free.differs_in)
    changes = ", ".join(f"{name}={value_words(free.strategy.get(name))}" for name in fields)
    near = f" (proved within {percent(free.gap)} of the best of that space)" if free.gap > 0 else ""
    return (
        f"{percent(free.faster_by)} faster, {close_seconds(free.step_time_s)}{near}, if"
        f" {software_title(plan.backend, plan.release)} could run {changes} under neutral physics. {free.why}."
    )


def short_strategy(strategy: dict[str, Any]) -> str:
    """``tp=4 pp=4x5 dp=4 zero=1 mbs=1 interleaved, recompute selective``: what a line of a table has room for."""
    words = [f"{name}={strategy[name]}" for name in DEGREES if strategy.get(name, 1) > 1]
    pp, vpp = strategy.get("pp", 1), strategy.get("vpp", 1)
    if pp > 1:
        words.append(f"pp={pp}x{vpp}" if vpp > 1 else f"pp={pp}")
    replicas, shards = strategy.get("dp_replicate", 1), strategy.get("dp_shard", 1)
    if replicas * shards > 1:
        words.append(f"dp={replicas}x{shards}" if replicas > 1 and shards > 1 else f"dp={replicas * shards}")
    words += [f"zero={strategy['zero_stage']}", f"mbs={strategy['micro_batch_size']}"]
    words += [strategy["schedule"]] if pp > 1 else []
    more = [f"recompute {strategy['recompute']}"] if strategy["recompute"] != "none" else []
    more += ["optimizer offload"] if strategy.get("optimizer_offload") else []
    more += ["activation offload"] if strategy.get("activation_offload") else []
    return ", ".join([" ".join(words), *more])


def _table(answers: tuple[BackEndAnswer, ...], searched: bool) -> RenderableType:
    """An estimate of a given strategy bounds nothing and has no strategies to tell apart: it has fewer columns."""
    rows = [_row(each, searched) for each in answers]
    columns = ("back-end", ">step", ">slower", ">gap", "strategy, or why there is no plan")
    return table("", columns if searched else ("back-end", ">step", ">slower", "why it does not run this"), rows)


def _row(each: BackEndAnswer, searched: bool) -> tuple[str, ...]:
    title = software_title(each.backend, each.release)
    if each.step_time_s is None:
        return (title, "", "", *([""] if searched else []), _reason(each.reason or ""))
    slower = "" if not each.slower_by else percent(each.slower_by, signed=True)
    told = short_strategy(each.strategy) if each.strategy is not None else ""
    gap = [percent(each.gap or 0.0)] if searched else []
    return (title, close_seconds(each.step_time_s), slower, *gap, told)


def _reason(text: str) -> str:
    """Several findings on one line: ``3 problems`` and their lines as sentences."""
    first, *lines = text.splitlines() or [""]
    return "; ".join(line.strip() for line in lines) if lines and first.endswith(" problems") else text
