"""``meshwright goodput``: tokens a day with failures, and days and money to a number of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, write_answer
from planner.operations.service import opened_service

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.search.goodput.goodput import Goodput

Asynchronous = Annotated[bool, typer.Option("--async", help="Checkpoints are written beside training.")]
FailuresOf = Annotated[str | None, typer.Option("--failures-of", metavar="RUN", help="A published run that fails so.")]
Restart = Annotated[
    float | None, typer.Option("--restart", metavar="SECONDS", help="From a failure to the first step.")
]
Repair = Annotated[float | None, typer.Option("--repair-hours", metavar="H", help="Until a failed node is back.")]
Spares = Annotated[int | None, typer.Option("--spare-nodes", metavar="N", help="Nodes that stand by.")]
Tokens = Annotated[float | None, typer.Option("--tokens", metavar="N", help="How many are to be trained: 15e12.")]
Price = Annotated[float | None, typer.Option("--price", metavar="X", help="Price of a device hour.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("goodput")(goodput)


def goodput(  # noqa: PLR0913, PLR0917  # a flag is an argument
    plan: flags.PlanReference,
    storage_bandwidth: Annotated[float, flags.STORAGE_BANDWIDTH],
    asynchronous: Asynchronous = False,
    failures_of: FailuresOf = None,
    failure_rate: flags.FailureRate = None,
    restart: Restart = None,
    repair_hours: Repair = None,
    spare_nodes: Spares = None,
    tokens: Tokens = None,
    price: Price = None,
    database: flags.Database = None,
    server: flags.Server = None,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Tokens a day with failures: the best checkpoint interval, spare nodes that pay, days and money to a goal."""
    from planner.operations.goodput import GOODPUT, GoodputRequest
    from profiles.validation import read_document

    said = {
        "plan": plan,
        "storage_bandwidth_bytes_per_s": storage_bandwidth * 1e9,
        "asynchronous": asynchronous,
        "failures_of": failures_of,
        "failures_per_device_hour": failure_rate,
        "restart_s": restart,
        "repair_hours": repair_hours,
        "spare_nodes": spare_nodes,
        "tokens": tokens,
        "price_per_device_hour": price,
    }
    asked = read_document(GoodputRequest, said, "goodput")
    with opened_service(server, database) as service:
        found = service.call(GOODPUT, asked)
    write_answer(found.model_dump(mode="json"), output, lambda: _tables(found))


def _tables(found: Goodput) -> Iterator[RenderableType]:
    from planner.answers.views.words import count, gib, money, percent, seconds
    from planner.cli.render.tables import bullets, facts, heading, table
    from profiles.units import HOUR_S

    lost = found.lost
    rows = [
        ("tokens a day", f"{count(found.tokens_per_day)} ({percent(found.useful)} of the time counts)"),
        ("without failures", count(found.tokens_per_day_without_failures)),
    ]
    if found.days is not None and found.tokens is not None:
        cost = "" if found.cost is None else f", {money(found.cost)}"
        rows.append((f"{count(found.tokens)} tokens", f"{found.days:,.1f} days{cost}"))
    if found.interval_s is not None and found.mean_time_between_failures_s is not None:
        rows += [
            ("a failure every", f"{found.mean_time_between_failures_s / HOUR_S:,.2f} h"),
            ("checkpoint every", f"{found.interval_steps:,} steps, {seconds(found.interval_s)}"),
        ]
    rows += [
        ("checkpoint", f"{gib(found.checkpoint_bytes)}, written in {seconds(found.checkpoint_write_s)}"),
        ("of it waited for", seconds(found.checkpoint_stall_s)),
        ("restart", seconds(found.restart_s)),
        ("lost to checkpoints", percent(lost.checkpoints)),
        ("done again", percent(lost.done_again)),
        ("restarting", percent(lost.restarts)),
        ("waiting for repairs", percent(lost.waiting)),
    ]
    yield facts(rows)
    yield heading("Failures")
    cells = [(each.kind, f"{each.per_day:,.3g}", "yes" if each.takes_node else "no") for each in found.failures]
    yield table("", ("kind", ">a day", "takes a node"), cells)
    if found.spares:
        yield heading("Spare nodes")
        spares = [
            (
                f"{each.spare_nodes:,}" + (" (best)" if each.spare_nodes == found.best_spare_nodes else ""),
                percent(each.waiting),
                count(each.tokens_per_day),
                count(each.tokens_per_device_day),
            )
            for each in found.spares
        ]
        yield table("", (">spare nodes", ">waiting", ">tokens a day", ">a device"), spares)
    yield heading("Assumptions")
    yield bullets(found.assumptions)
