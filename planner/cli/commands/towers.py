"""``meshwright towers``: where the tower of a model stands best, and in which layout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import options as flags
from planner.cli.backend_names import ANY, parse_backends
from planner.cli.output import OutputFormat, talk, write_answer
from planner.cli.problem_inputs import ProblemFlags, SpaceFlags, build_problem, positive, whole_number
from planner.cli.workload_flags import NOTHING_SAID, WorkloadFlags, with_flags
from planner.operations.service import opened_service
from planner.strategy.fields import PINNABLE
from planner.strategy.text import parse_assignments, parse_forbids

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.search.towers.plan import TowerPart, TowerPlace, TowersPlan

TowerDevices = Annotated[
    int | None,
    typer.Option("--tower-devices", metavar="N", help="The tower's number of devices of its own (default: the best)."),
]
TimeLimit = Annotated[
    float | None, typer.Option("--time-limit", metavar="SECONDS", help="Stop searching after this; the gap is told.")
]
SHOWN = ("tp", "pp", "dp", "ep", "micro_batch_size", "num_microbatches", "recompute")
"""Fields of the language model's strategy that the table tells; degrees of one are left out."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("towers")(towers)


@with_flags("work", WorkloadFlags)
def towers(  # noqa: PLR0913, PLR0917  # a flag is an argument
    model: flags.Model,
    cluster: flags.ClusterReference,
    devices: flags.Devices = None,
    work: WorkloadFlags = NOTHING_SAID,
    tower_devices: TowerDevices = None,
    pin: flags.Pin = None,
    forbid: flags.Forbid = None,
    backend: flags.Backend = ANY,
    memory_margin: flags.MemoryMargin = None,
    fits: flags.Fits = None,
    time_limit: TimeLimit = None,
    server: flags.Server = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Where a model's tower stands best: on the first stage, on the same devices, or on devices of its own."""
    positive(time_limit, "--time-limit")
    whole_number(tower_devices, "--tower-devices")
    space = SpaceFlags(
        parse_assignments(pin or [], "--pin", PINNABLE),
        parse_forbids(forbid or (), "--forbid"),
        parse_backends(backend),
        memory_margin,
        fits=fits,
    )
    problem = build_problem(ProblemFlags(model, cluster, devices, work, space))
    from planner.operations.towers import TOWERS, towers_request

    talk(f"checked: {problem.model.name} on {problem.cluster.num_devices:,} devices", quiet=quiet)
    with opened_service(server) as service:
        found = service.call(TOWERS, towers_request(problem, tower_devices, time_limit))
    talk(f"searched the language model {found.searches} times, gap {found.gap:.2%}", quiet=quiet)
    write_answer(found.model_dump(mode="json", exclude={"problem"}), output, lambda: _tables(found))


def _tables(found: TowersPlan) -> Iterator[RenderableType]:
    from rich.text import Text

    from planner.answers.views.words import percent, seconds
    from planner.cli.render.tables import bullets, heading, table
    from planner.search.towers.plan import PLACE_WORDS

    best, problem = found.best, found.problem
    yield Text(
        f"{problem.model.name} on {problem.cluster.num_devices:,} devices of {problem.cluster.name}:"
        f" the {found.modality} tower stands best {PLACE_WORDS[best.place]}",
        style="bold",
    )
    yield Text(
        f"step {seconds(best.step_time_s)}; no plan of these places is faster than {seconds(found.lower_bound_s)}"
        f" (gap {percent(found.gap)})"
    )
    yield heading("Places")
    head = ("the tower stands", ">step", ">slower", ">MFU", ">fullest device", ">fits")
    yield table("", head, [_place_row(place, best) for place in found.places])
    yield bullets([f"{PLACE_WORDS[place]}: {reason}" for place, reason in found.refused.items()])  # type: ignore[index]
    for place in found.places:
        yield heading(PLACE_WORDS[place.place].capitalize())
        yield from _place(place)
    tried = [each for each in found.splits if each.lower_bound_s is not None]
    if tried:
        yield heading("Devices of its own")
        rows = [
            (
                f"{each.tower_devices:,}",
                "" if each.step_time_s is None else seconds(each.step_time_s),
                seconds(each.lower_bound_s or 0.0),
                each.reason or "",
            )
            for each in tried
        ]
        yield table("", (">devices of the tower", ">step", ">bound", ""), rows)
    yield heading("Assumptions")
    yield bullets(found.assumptions)


def _place_row(place: TowerPlace, best: TowerPlace) -> tuple[str, ...]:
    from planner.answers.views.words import gib, percent, seconds
    from planner.search.towers.plan import PLACE_WORDS

    slower = place.step_time_s / best.step_time_s - 1.0
    return (
        PLACE_WORDS[place.place],
        seconds(place.step_time_s),
        "" if place is best else f"+{percent(slower)}",
        percent(place.model_flops_utilization),
        gib(place.peak_memory_bytes),
        percent(place.fits_probability),
    )


def _place(place: TowerPlace) -> Iterator[RenderableType]:
    from planner.answers.views.words import gib, seconds
    from planner.cli.render.tables import facts

    strategy = place.language.strategy
    said = ", ".join(f"{name}={strategy[name]}" for name in SHOWN if strategy[name] != 1)
    layers = "+".join(str(stage.layers) for stage in place.language.stages)
    peak = max(stage.peak_memory_bytes.total for stage in place.language.stages)
    rows = [
        ("language", f"{place.language.devices:,} devices: {said}"),
        ("", f"layers {layers}, fullest stage {gib(peak)}, {seconds(place.language.step_time_s)} a step by itself"),
    ]
    if place.tower is not None:
        rows += _tower_rows(place.tower)
    yield facts(rows)


def _tower_rows(tower: TowerPart) -> list[tuple[str, str]]:
    from planner.answers.views.words import gib, seconds

    bill = tower.peak_memory_bytes
    runs = "frozen" if tower.frozen else "trained"
    return [
        ("tower", f"{tower.devices:,} devices: tp={tower.tp}, dp={tower.dp}, {runs}"),
        (
            "",
            f"a micro-batch ({tower.samples_per_rank} of its samples a rank): {seconds(tower.forward_s)} forward,"
            f" {seconds(tower.backward_s)} backward, {seconds(tower.bridge_s)} to hand over",
        ),
        ("", f"{gib(bill.total)} a device, of which activations {gib(bill.activations)}"),
    ]
