"""``meshwright place``: which node of an allocation takes which place of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, talk, write_answer
from planner.errors import DocumentInvalid
from planner.operations.service import opened_service

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.answers.placement.placement import Placement

Topology = Annotated[
    Path,
    typer.Option(
        "--topology", metavar="FILE", help="`scontrol show topology`, topology.conf, or lines `leaf1: n[001-032]`."
    ),
]
Nodes = Annotated[
    Path | None,
    typer.Option("--nodes", metavar="FILE", help="The allocation, one node or host list a line; else the topology's."),
]
TimeLimit = Annotated[float, typer.Option("--time-limit", metavar="SECONDS", help="For the integer program.")]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Of the search.")]
HostsOut = Annotated[
    Path | None, typer.Option("--hosts-out", metavar="FILE", help="Write the order, for `meshwright emit --hosts`.")
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("place")(place)


def place(  # noqa: PLR0917  # a flag is an argument
    plan: flags.PlanReference,
    topology: Topology,
    nodes: Nodes = None,
    time_limit: TimeLimit = 6.0,
    seed: Seed = 0,
    hosts_out: HostsOut = None,
    database: flags.Database = None,
    server: flags.Server = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """The order of the nodes that a scheduler gave that is fastest for a plan, and what it wins."""
    from planner.backends.launch.hosts import load_hosts
    from planner.operations.placement import PLACEMENT, PlacementRequest
    from profiles.validation import read_document

    said = {
        "plan": plan,
        "topology": _text(topology),
        "nodes": load_hosts(nodes) if nodes else (),
        "time_limit_s": time_limit,
        "seed": seed,
    }
    asked = read_document(PlacementRequest, said, "place")
    with opened_service(server, database) as service:
        found = service.call(PLACEMENT, asked)
    if hosts_out is not None:
        hosts_out.write_text("".join(f"{node}\n" for node in found.order), encoding="utf-8")
        talk(f"next: meshwright emit {plan} --hosts {hosts_out}", quiet=quiet)
    write_answer(found.model_dump(mode="json"), output, lambda: _tables(found))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentInvalid(
            f"cannot read the topology: {error}",
            where=f"--topology {path}",
            hint="write `scontrol show topology` there",
        ) from error


def _tables(found: Placement) -> Iterator[RenderableType]:
    from planner.answers.views.words import percent, seconds
    from planner.cli.render.tables import bullets, facts, heading, table

    yield facts(
        [
            ("step, nodes as listed", seconds(found.listed_step_time_s)),
            ("step, as placed", f"{seconds(found.placed_step_time_s)} ({percent(found.faster_by)} faster)"),
            ("step of the plan", f"{seconds(found.plan_step_time_s)}, with nodes in order on the plan's own fabric"),
            ("order", "changed" if found.changed else "as listed: no faster one was found"),
            (
                "communication that shows",
                f"{seconds(found.listed_exposed_s)} -> {seconds(found.placed_exposed_s)}, no order below"
                f" {seconds(found.bound_exposed_s)} (gap {percent(found.gap)})",
            ),
        ]
    )
    if found.axes:
        yield heading("Times as long as with nodes in order on the plan's own fabric")
        rows = [(axis.axis, f"{axis.as_listed:,.2f}", f"{axis.as_placed:,.2f}") for axis in found.axes]
        yield table("", ("axis", ">as listed", ">as placed"), rows)
    yield heading("Node ranks under each leaf")
    leaves = [(leaf.leaf, f"{leaf.nodes:,}", _ranges(leaf.ranks_before), _ranges(leaf.ranks)) for leaf in found.leaves]
    yield table("", ("leaf", ">nodes", "as listed", "as placed"), leaves)
    yield heading("Assumptions")
    yield bullets(found.assumptions)


def _ranges(ranks: tuple[int, ...]) -> str:
    """``0-3, 8`` for 0, 1, 2, 3, 8."""
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and parts[-1][1] == rank - 1:
            parts[-1][1] = rank
        else:
            parts.append([rank, rank])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)
