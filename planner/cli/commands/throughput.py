"""``meshwright throughput``: the speed of a job on each of the given numbers of devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import options as flags
from planner.cli.backend_names import ANY, parse_backends
from planner.cli.output import OutputFormat, talk, write_answer
from planner.cli.problem_inputs import ProblemFlags, SpaceFlags, positive
from planner.cli.workload_flags import NOTHING_SAID, WorkloadFlags, with_flags
from planner.errors import DocumentInvalid
from planner.operations.service import opened_service
from planner.strategy.fields import PINNABLE
from planner.strategy.text import parse_assignments, parse_forbids

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.answers.throughput.curve import Throughput, ThroughputPoint

TITLE = "The fastest plan found for each (as plan --prefer fastest; the recommended one may be a little slower)"
MOST_COUNTS = 64
LONGEST_S = 60.0

Counts = Annotated[
    str, typer.Option("--devices", "-n", metavar="N,...", help="Numbers of devices, for example 8,16,32.")
]
Price = Annotated[
    float | None, typer.Option("--price", metavar="X", help="Price of a device hour (default: the cluster's own).")
]
Budget = Annotated[float, typer.Option("--budget", metavar="SECONDS", help="Time for the whole answer, at most 60.")]
Limit = Annotated[
    float | None,
    typer.Option("--time-limit", metavar="SECONDS", help="Of the budget, the most for one search of one number."),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("throughput")(throughput)


@with_flags("work", WorkloadFlags)
def throughput(  # noqa: PLR0913, PLR0917  # a flag is an argument
    model: flags.Model,
    cluster: flags.ClusterReference,
    devices: Counts,
    work: WorkloadFlags = NOTHING_SAID,
    profile: flags.Profile = "auto",
    calibration: flags.Calibration = None,
    price: Price = None,
    max_step_time: flags.MaxStepTime = None,
    min_tokens_per_s: flags.MinTokensPerSecond = None,
    pin: flags.Pin = None,
    forbid: flags.Forbid = None,
    backend: flags.Backend = ANY,
    memory_margin: flags.MemoryMargin = None,
    fits: flags.Fits = None,
    budget: Budget = 10.0,
    time_limit: Limit = None,
    seed: flags.Seed = 0,
    no_store: flags.NoStore = False,
    database: flags.Database = None,
    server: flags.Server = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Fits or not, step time, tokens a second and cost of the fastest plan for each that is proved or quickly found."""
    counts = parse_counts(devices)
    positive(price, "--price")
    if not 0 < budget <= LONGEST_S:
        raise DocumentInvalid(f"{budget} s", where="--budget", hint=f"give a number above 0, up to {LONGEST_S:g}")
    pins = parse_assignments(pin or [], "--pin", PINNABLE)
    space = SpaceFlags(
        pins,
        parse_forbids(forbid or (), "--forbid"),
        parse_backends(backend),
        memory_margin,
        max_step_time,
        min_tokens_per_s,
        fits=fits,
    )
    positive(time_limit, "--time-limit")
    asked = ProblemFlags(model, cluster, None, work, space, profile, calibration)
    from planner.cli.question import question_of
    from planner.operations.throughput import THROUGHPUT, ThroughputRequest

    unknown = {"--no-store": no_store}
    with opened_service(server, database, only_here=unknown, instead="plan on this machine") as service:
        wanted = ThroughputRequest(
            question=question_of(service, asked),
            device_counts=counts,
            price_per_device_hour=price,
            budget_s=budget,
            time_limit_s=time_limit,
            seed=seed,
        )
        found = service.call(THROUGHPUT, wanted, keep=not no_store)
    if found.undecided:
        talk(f"{found.undecided} not decided; a longer --budget decides more", quiet=quiet)
    write_answer(found.model_dump(mode="json"), output, lambda: _table(found))


def parse_counts(text: str) -> tuple[int, ...]:
    """``8,16,32`` as numbers.  Raises DocumentInvalid."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 9 and int(part) > 0 for part in parts):
        raise DocumentInvalid(f"{text!r} is no list of device counts", where="--devices", hint="write it as 8,16,32")
    if len(parts) > MOST_COUNTS:
        raise DocumentInvalid(f"{len(parts)} device counts", where="--devices", hint=f"ask for at most {MOST_COUNTS}")
    return tuple(int(part) for part in parts)


def _table(found: Throughput) -> Iterator[RenderableType]:
    from planner.cli.render.tables import table

    head = (">devices", "fits", ">step", ">bound", ">tokens/s", ">MFU", ">gap", ">cost of 1 M tokens", "plan", "why")
    yield table(TITLE, head, [_row(point) for point in found.points])


def _row(point: ThroughputPoint) -> tuple[str, ...]:
    from planner.answers.views.words import count, money, percent, seconds, short_id

    fits = {True: "yes", False: "no", None: "unknown"}[point.fits]
    if point.plan_id is None or point.step_time_s is None:
        return (f"{point.num_devices:,}", fits, *[""] * 7, point.reason or "")
    cost = point.cost_per_million_tokens
    return (
        f"{point.num_devices:,}",
        fits if point.meets_target else "yes, too slow",
        seconds(point.step_time_s),
        "" if point.lower_bound_s is None else seconds(point.lower_bound_s),
        count(point.tokens_per_s or 0.0),
        percent(point.model_flops_utilization or 0.0),
        "proved" if point.proved else percent(point.gap or 0.0),
        "" if cost is None else money(cost),
        short_id(point.plan_id),
        point.slower or "",
    )
