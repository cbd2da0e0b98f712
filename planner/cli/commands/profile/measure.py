"""``meshwright profile measure``: micro-benchmarks on this machine, kept as a profile."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import options as flags
from planner.cli.commands.profile.flags import Profiles
from planner.cli.commands.profile.measure_plans import MeasureFlags, collective_plan, device_plan, wanted_kinds
from planner.cli.output import OutputFormat, talk, write_answer
from planner.cli.progress import counted_progress

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import RenderableType

    from profiles.importing.imported import Imported


class BackendChoice(StrEnum):
    """Where to measure."""

    AUTO = "auto"
    CUDA = "cuda"
    ROCM = "rocm"
    NPU = "npu"
    XPU = "xpu"
    CPU = "cpu"


class GridChoice(StrEnum):
    """How many shapes beside the model's own."""

    NONE = "none"
    SMALL = "small"
    FULL = "full"


Model = Annotated[
    str | None, typer.Option("--model", "-m", metavar="M", help="Also measure the shapes that this model runs.")
]
Degrees = Annotated[
    str, typer.Option("--tp", "--devices", metavar="T,...", help="Tensor-parallel degrees of the model's shapes.")
]
Sequence = Annotated[
    int | None, typer.Option("--sequence-length", metavar="S", help="Tokens of the model's shapes (default 4096).")
]
Dtypes = Annotated[str, typer.Option("--dtype", metavar="D,...", help="bf16, fp16, fp32, fp8.")]
Only = Annotated[
    str | None, typer.Option("--only", metavar="KIND,...", help="Only these: matmul, attention, ..., collectives.")
]
Grid = Annotated[
    GridChoice | None,
    typer.Option("--grid", help="Generic shapes (default: full; small on a CPU).", show_default=False),
]
Budget = Annotated[
    float, typer.Option("--time-budget", metavar="SECONDS", help="Begin nothing new after it; the rest is listed.")
]
Backend = Annotated[BackendChoice, typer.Option("--backend", help="Where to measure.")]
JournalFile = Annotated[
    Path | None, typer.Option("--journal", metavar="FILE", help="Keep finished cases here; a rerun goes on after them.")
]
Sizes = Annotated[
    str | None, typer.Option("--sizes", metavar="BYTES,...", help="Collectives: message sizes, for example 4KiB,1MiB.")
]
NodeSize = Annotated[
    int | None,
    typer.Option("--devices-per-node", metavar="N", help="Collectives: ranks of a node (default: torchrun's)."),
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write the profile as JSON instead of storing it.")
]


def register(profile_app: typer.Typer) -> None:
    """Add the command to the group ``profile``."""
    profile_app.command("measure")(measure)


def measure(  # noqa: PLR0913, PLR0917  # a flag is an argument
    model: Model = None,
    tp: Degrees = "1,2,4,8",
    sequence_length: Sequence = None,
    dtype: Dtypes = "bf16",
    only_kinds: Only = None,
    grid: Grid = None,
    time_budget: Budget = 600.0,
    backend: Backend = BackendChoice.AUTO,
    journal: JournalFile = None,
    sizes: Sizes = None,
    devices_per_node: NodeSize = None,
    out: Out = None,
    profiles: Profiles = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Measure operators on this machine; under torchrun, collectives and their overlap with compute."""
    from profiles.measure.device import import_torch
    from profiles.measure.ranks import launched_by_torchrun

    import_torch()
    only = wanted_kinds(only_kinds, several=launched_by_torchrun())
    said = MeasureFlags(
        only,
        dtype,
        time_budget,
        backend.value,
        grid and grid.value,
        model,
        tp,
        sequence_length,
        sizes,
        devices_per_node,
    )
    together = launched_by_torchrun() or "collectives" in only or "overlap" in only
    imported = _run(said, journal, together=together, quiet=quiet)
    if imported is None:
        return
    data = summary(imported)
    data["batches"], data["file"] = _keep(imported, out, profiles)
    write_answer(data, output, lambda: _tables(data))


def summary(imported: Imported) -> dict[str, Any]:
    """What was measured, on what, and what was not."""
    batch = imported.batches[0]
    counts: dict[str, dict[str, int]] = {}
    # Under torchrun the operators are the products and collectives that ran beside each other.
    named = [
        (f"overlap {row.dtype}" if row.operator == "other" else f"{row.operator} {row.phase} {row.dtype}", row.ok)
        for row in batch.operators
    ]
    named += [(f"{row.operation} {row.dtype}", row.ok) for row in batch.collectives]
    named += [(str(row.kind), row.ok) for row in batch.links]
    for name, ok in named:
        counts.setdefault(name, {"measured": 0, "failed": 0})["measured" if ok else "failed"] += 1
    return {
        "environment": batch.environment.model_dump(mode="json", exclude_defaults=True),
        "measured": counts,
        "left_out": imported.skipped,
        "flags": [{"code": flag.code, "what": flag.what} for flag in imported.flags],
        "facts": imported.facts,
    }


def _run(said: MeasureFlags, path: Path | None, *, together: bool, quiet: bool) -> Imported | None:
    """The result; None on the ranks that another one speaks for."""
    from profiles.measure.collective_plan import CollectivePlan
    from profiles.measure.collectives import measure_collectives
    from profiles.measure.ranks import quiet_rank
    from profiles.measure.resume import Journal
    from profiles.measure.run import measure_device

    silent = quiet or quiet_rank()
    plan = collective_plan(said) if together else device_plan(said)
    talk(f"measuring for at most about {said.time_budget_s:g} s", quiet=silent)
    # One rank keeps the journal: several writers would tear each other's lines.
    kept = Journal(None if quiet_rank() else path)
    with kept, counted_progress("measuring", quiet=silent) as progress:
        if isinstance(plan, CollectivePlan):
            return measure_collectives(plan, progress, kept)
        return measure_device(plan, progress, kept)


def _keep(imported: Imported, out: Path | None, profiles: str | None) -> tuple[list[str], str | None]:
    """(ids of stored batches, file that was written)."""
    if out is not None:
        from planner.operations.reading import write_file
        from profiles.measure.measured_file import document_text

        write_file(out, document_text(imported))
        return [], str(out)
    from profiles.measure.measured_file import FORMAT_NAME
    from profiles.observation_store.store import ObservationStore
    from profiles.observations.source import Source

    source = Source(
        kind="measured",
        format=FORMAT_NAME,
        tool=imported.tool,
        tool_version=imported.tool_version,
        flags=tuple(imported.flags),
    )
    return [stored.batch.batch_id for stored in ObservationStore.open(profiles).add(imported, source)], None


def _tables(data: dict[str, Any]) -> Iterable[RenderableType]:
    from planner.answers.views.words import short_id
    from planner.cli.render.tables import bullets, facts, heading, table

    environment, wall = data["environment"], f"{data['facts']['wall_s']:g} s"
    kept = data["file"] or ", ".join(short_id(batch) for batch in data["batches"])
    yield facts(
        [
            ("device", environment["device_reported"]),
            ("software", f"{environment['framework']} {environment['framework_version']}"),
            ("measured in", wall),
            ("kept in", kept),
        ]
    )
    yield heading("Measured")
    rows = [(name, str(each["measured"]), str(each["failed"] or "")) for name, each in data["measured"].items()]
    yield table("", ("what", ">cases", ">failed"), rows)
    if data["left_out"]:
        yield heading("Left out")
        yield table("", ("reason", ">cases"), [(reason, str(count)) for reason, count in data["left_out"].items()])
    notes = [flag["what"] for flag in data["flags"] if flag["code"] != "left-out"]
    if notes:
        yield heading("Notes")
        yield bullets(notes)
