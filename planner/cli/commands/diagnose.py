"""``meshwright diagnose``: why a real run is slower than its plan, from its logs and traces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import options as flags
from planner.cli.output import OutputFormat, write_answer
from planner.operations.service import opened_service

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.answers.diagnose.document import Diagnosis

MOST_RANKS_SHOWN = 16
MOST_OPERATORS_SHOWN = 12

Logs = Annotated[
    list[Path],
    typer.Argument(metavar="LOG...", help="Training logs and Kineto traces of the run, or folders of them."),
]
CalibrationOut = Annotated[
    Path | None,
    typer.Option(
        "--calibration-out", metavar="FILE", help="Write the calibration, for `meshwright plan --calibration`."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("diagnose")(diagnose)


def diagnose(
    plan: flags.PlanReference,
    logs: Logs,
    calibration_out: CalibrationOut = None,
    database: flags.Database = None,
    server: flags.Server = None,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Why is the real run slower than the plan: predicted and measured side by side, and what costs the seconds.

    The files are read on this machine, also with --server.
    """
    from planner.errors import DocumentInvalid
    from planner.operations.diagnosis import DIAGNOSIS, DiagnosisHere
    from profiles.validation import read_document

    said = {"plan": plan, "paths": [str(path) for path in logs]}
    asked = read_document(DiagnosisHere, said, "diagnose")
    with opened_service(server, database) as service:
        found = service.call(DIAGNOSIS, asked)
    if calibration_out is not None:
        if found.calibration is None:
            raise DocumentInvalid(
                "there is no calibration to write",
                where="--calibration-out",
                hint="give the training log of a run of this plan: it needs iteration times and no other layout",
            )
        from planner.evidence.calibration.folder import calibration_text
        from planner.operations.reading import write_file

        write_file(calibration_out, calibration_text(found.calibration))
    write_answer(found.model_dump(mode="json"), output, lambda: _tables(found))


def _tables(found: Diagnosis) -> Iterator[RenderableType]:
    from planner.answers.views.words import percent, seconds
    from planner.cli.render.tables import bullets, facts, heading

    yield facts(list(_headline(found)))
    yield from _findings(found)
    yield from _parts(found)
    yield from _ranks(found)
    yield from _memory(found)
    if found.calibration is not None and found.calibrated_step_s is not None:
        factors = found.calibration.factors.changed()
        told = ", ".join(f"{name} {value:.4g}" for name, value in sorted(factors.items()))
        yield heading("Calibration")
        yield bullets([f"with {told} the plan takes {seconds(found.calibrated_step_s)}; --calibration-out writes it"])
    if found.not_measured:
        yield heading("Not measured")
        yield bullets(found.not_measured)
    unused = [f"{each.name}: {each.not_used}" for each in found.files if each.not_used]
    if unused:
        yield heading("Files that say nothing here")
        yield bullets(unused)
    if found.unexplained_s is not None:
        share = percent(abs(found.unexplained_s) / found.predicted_step_s)
        said = "more than the plan and the findings say" if found.unexplained_s > 0 else "less than the plan says"
        yield heading("Not explained")
        yield bullets([f"the step takes {seconds(abs(found.unexplained_s))} {said} ({share} of the plan's step)"])


def _findings(found: Diagnosis) -> Iterator[RenderableType]:
    from planner.cli.render.tables import bullets, heading, table

    yield heading("What was found, by what it costs a step")
    if not found.findings:
        yield bullets(["nothing: the files show no fault that is known here"])
        return
    rows = [(_seconds(each.seconds) or "?", str(each.kind), each.what) for each in found.findings]
    yield table("", (">costs", "finding", "what"), rows)
    yield heading("What to do")
    yield bullets([f"{each.kind}: {each.advice} ({'; '.join(each.evidence)})" for each in found.findings])


def _parts(found: Diagnosis) -> Iterator[RenderableType]:
    from planner.cli.render.tables import heading, table

    yield heading("Parts of the step")
    columns = ("part", ">predicted", ">measured", ">hidden", ">of it waiting")
    told = [
        (each.words, *map(_seconds, (each.predicted_s, each.measured_s, each.hidden_s, each.waiting_s)))
        for each in found.terms
    ]
    # Without a trace nothing of it is measured.
    measured = any(each.measured_s is not None for each in found.terms)
    yield table("", columns, told) if measured else table("", columns[:2], [row[:2] for row in told])
    if found.operators:
        yield heading("Computing by operator")
        most = found.operators[:MOST_OPERATORS_SHOWN]
        cells = [(each.operator, _seconds(each.predicted_s), _seconds(each.measured_s)) for each in most]
        yield table("", ("operator", ">predicted", ">measured"), cells)


def _ranks(found: Diagnosis) -> Iterator[RenderableType]:
    from planner.cli.render.tables import heading, table

    if not found.ranks:
        return
    slowest = sorted(found.ranks, key=lambda each: -each.own_s)[:MOST_RANKS_SHOWN]
    hidden = len(found.ranks) - len(slowest)
    yield heading("Traced ranks" + (f" (the {len(slowest)} that work longest)" if hidden else ""))
    cells = [
        (
            str(each.rank),
            "?" if each.stage is None else str(each.stage),
            *map(_seconds, (each.step_s, each.own_s, each.communication_s, each.waiting_s, each.idle_s)),
        )
        for each in sorted(slowest, key=lambda each: each.rank)
    ]
    columns = (">rank", ">stage", ">step", ">own work", ">communication", ">of it waiting", ">gaps in own work")
    yield table("", columns, cells)


def _headline(found: Diagnosis) -> Iterator[tuple[str, str]]:
    from planner.answers.views.words import percent, seconds

    low, high = found.predicted_interval_s
    if not found.same_run:
        yield "compared", "two different runs: see what was found first"
    yield "predicted step", f"{seconds(found.predicted_step_s)} (80 %: {seconds(low)} to {seconds(high)})"
    if found.as_run_step_s is not None:
        yield "predicted as the log says", seconds(found.as_run_step_s)
    if found.step is None or found.slower_by is None:
        yield "measured step", "no file tells"
        return
    step = found.step
    yield (
        "measured step",
        f"{seconds(step.median_s)}, median of {step.num_steps} (10 % to 90 %: {seconds(step.p10_s)} to"
        f" {seconds(step.p90_s)}; {step.source})",
    )
    yield "measured over predicted", percent(found.slower_by, signed=True)


def _memory(found: Diagnosis) -> Iterator[RenderableType]:
    from planner.answers.views.words import gib, percent
    from planner.cli.render.tables import heading, table

    rows = [each for each in found.memory if each.measured_bytes]
    if not rows:
        return
    shown = sorted(rows, key=lambda each: -(each.measured_bytes or 0))[:MOST_RANKS_SHOWN]
    yield heading("Peak memory")
    cells = [
        (
            str(each.rank),
            str(each.stage),
            gib(each.predicted_bytes),
            f"{gib(each.measured_bytes or 0)} {each.meaning}",
            percent((each.measured_bytes or 0) / each.predicted_bytes - 1.0, signed=True),
        )
        for each in sorted(shown, key=lambda each: each.rank or 0)
    ]
    yield table("", (">rank", ">stage", ">predicted", ">measured", ">difference"), cells)


def _seconds(value_s: float | None) -> str:
    from planner.answers.views.words import seconds

    return "" if value_s is None else seconds(value_s)
