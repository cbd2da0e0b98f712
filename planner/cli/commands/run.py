"""``meshwright run``: a proof that the plan trains, made at a small size on CPU ranks of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import options as flags
from planner.cli.backend_names import BEST, bare_name, complete_backends, parse_emitted
from planner.cli.emitting import difference_lines, keep_plan, planned_there, tell_difference, there_data
from planner.cli.output import OutputFormat, talk, write_answer
from planner.errors import BackEndRefused, DocumentInvalid

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.answers.replan.other_backend import PlanThere
    from planner.backends.folders.tiny_run import TinyRun
    from planner.plan.plan import Plan

Tiny = Annotated[bool, typer.Option("--tiny", help="A small model on the plan's mesh, on CPU ranks of this machine.")]
Backend = Annotated[
    str | None,
    typer.Option(
        "--backend",
        metavar="B[==RELEASE]",
        help="Back-end to run on (default: the plan's own); for another one the question is planned there.",
        autocompletion=complete_backends,
    ),
]
Steps = Annotated[int, typer.Option("--steps", metavar="N", min=1, max=1000, help="Optimizer steps to compare.")]
Keep = Annotated[
    Path | None, typer.Option("--keep", metavar="DIR", help="Keep the emitted files and the ranks' output here.")
]
MaxRanks = Annotated[
    int, typer.Option("--max-ranks", metavar="N", min=1, max=64, help="Processes to start; a larger mesh is shrunk.")
]
Timeout = Annotated[float, typer.Option("--timeout", metavar="SECONDS", min=1, help="Stop everything after this time.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)


def run(  # noqa: PLR0917  # a flag is an argument
    plan: flags.PlanReference,
    tiny: Tiny = False,
    backend: Backend = None,
    steps: Steps = 3,
    keep: Keep = None,
    max_ranks: MaxRanks = 8,
    timeout: Timeout = 300.0,
    database: flags.Database = None,
    quiet: flags.Quiet = False,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Train a small form of a plan on CPU ranks and compare its losses with one process.  Exit code 8 on a mismatch."""
    if not tiny:
        raise DocumentInvalid(
            "only the small form of a plan runs here",
            where="meshwright run",
            hint="add --tiny, or start the launch files of `meshwright emit` on the cluster",
        )
    from planner.backends.folders.tiny_run import TinyOptions, tiny_run
    from planner.operations.plan_reference import load_plan

    named = None if backend is None else _one_backend(backend)
    the_plan = load_plan(plan, database)
    there = _there(plan, the_plan, named, quiet=quiet)
    if there.difference is not None:
        data = there_data(there)
        tell_difference(data, quiet=quiet)
        talk("\n".join(difference_lines(data)[1:]), quiet=quiet)
        keep_plan(there.plan, database, quiet=quiet)
    talk(f"starting CPU ranks for {there.plan.backend} (at most {max_ranks}) ...", quiet=quiet)
    done = tiny_run(there.plan, TinyOptions(steps, max_ranks, timeout, keep))
    kept = done.folder if keep is not None or not done.parity else None
    data = run_data(there, done, kept)
    write_answer(data, output, lambda: run_tables(data))
    if not done.parity:
        raise BackEndRefused(
            f"losses differ by {data['largest_relative_difference']} from one process,"
            f" more than {data['tolerance']:.0e}",
            where=str(kept),
            hint="the folder holds the emitted files and what the ranks said",
        )


def _one_backend(text: str) -> str:
    """The back-end that ``--backend`` names.  Raises NotFound; DocumentInvalid for several, or one without a runner."""
    from planner.backends.folders.tiny_run import runner

    names = parse_emitted(text, "--backend")
    if len(names) > 1:
        raise DocumentInvalid("one back-end runs at a time", where="--backend", hint=f"name one of {', '.join(names)}")
    if names[0] != BEST:
        # Before anything is planned there: whether it can run here at all.
        runner(bare_name(names[0]))
    return names[0]


def _there(reference: str, plan: Plan, named: str | None, *, quiet: bool) -> PlanThere:
    """The plan that runs: of the named back-end, of the one that an emitted folder is for, else the plan itself."""
    from planner.backends.emission.write import MANIFEST, read_manifest

    folder = Path(reference)
    if named is None and reference != "-" and (folder / MANIFEST).is_file():
        manifest = read_manifest(folder)
        own = manifest.get("plan_id") == plan.plan_id or manifest["backend"] == plan.backend
        named = BEST if own else _one_backend(str(manifest["backend"]))
    return planned_there(plan, named or BEST, None, quiet=quiet)


def run_data(there: PlanThere, done: TinyRun, kept: Path | None) -> dict[str, Any]:
    """What a program wants to know."""
    from math import isfinite

    from planner.backends.folders.tiny_run import worst

    strategy, difference = done.shrunk.plan.chosen(), worst(done.steps)
    axes = ("tp", "cp", "pp", "dp_replicate", "dp_shard", "ep", "etp")
    mesh = {axis: getattr(strategy, axis) for axis in axes}
    return {
        **there_data(there),
        "mesh": {**mesh, "ranks": strategy.world_size, "schedule": strategy.schedule, "vpp": strategy.vpp},
        "shrunk": {change.name: {"from": change.before, "to": change.after} for change in done.changes},
        "steps": [
            {
                "step": number,
                "loss": _finite(step.loss),
                "reference_loss": _finite(step.reference_loss),
                "relative_difference": _finite(step.relative_difference),
            }
            for number, step in enumerate(done.steps)
        ],
        "parity": done.parity,
        "largest_relative_difference": difference if isfinite(difference) else None,
        "tolerance": done.tolerance,
        "notes": list(done.notes),
        "directory": None if kept is None else str(kept),
        "wall_s": round(done.wall_s, 2),
    }


def _finite(value: float) -> float | None:
    """The value, None for one that JSON has no word for."""
    from math import isfinite

    return value if isfinite(value) else None


def run_tables(data: dict[str, Any]) -> list[RenderableType]:
    """The same for a person."""
    from rich.table import Table

    mesh = data["mesh"]
    axes = ", ".join(f"{axis}={mesh[axis]}" for axis in ("tp", "cp", "pp", "dp_replicate", "dp_shard", "ep"))
    lines: list[RenderableType] = [
        f"{data['backend']} on {mesh['ranks']} CPU ranks: {axes}, schedule {mesh['schedule']}, vpp={mesh['vpp']}"
    ]
    changes = ", ".join(f"{name} {each['from']} -> {each['to']}" for name, each in data["shrunk"].items())
    lines.append(f"shrunk: {changes or 'nothing'}")
    table = Table(box=None, pad_edge=False)
    for title in ("step", "loss", "one process", "relative difference"):
        table.add_column(title, justify="right")
    for step in data["steps"]:
        numbers = (step["loss"], step["reference_loss"])
        words = ["not a number" if value is None else f"{value:.6f}" for value in numbers]
        difference = step["relative_difference"]
        table.add_row(str(step["step"]), *words, "infinite" if difference is None else f"{difference:.1e}")
    lines.append(table)
    verdict = "the ranks train what one process trains" if data["parity"] else "the ranks do NOT train the same"
    lines.append(f"{verdict} (tolerance {data['tolerance']:.0e}), {data['wall_s']:.1f} s")
    lines += [f"note: {note}" for note in data["notes"]]
    if data["directory"]:
        lines.append(f"kept in {data['directory']}")
    return lines
