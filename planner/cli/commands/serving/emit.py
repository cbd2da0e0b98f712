"""``meshwright serving emit``: the files that start a plan's deployment on a platform."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import options as flags
from planner.cli.commands.serving.explain import PlanFile, read_plan
from planner.cli.output import OutputFormat, write_answer
from planner.errors import NotFound

if TYPE_CHECKING:
    from planner.serving.layout import Deployment
    from planner.serving.plan import ServingPlan

Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder to write.")]
PlatformName = Annotated[
    str, typer.Option("--platform", metavar="P", help="plain, dynamo, triton, ray-serve or llm-d (default plain).")
]
ServedModel = Annotated[
    str | None,
    typer.Option("--served-model", metavar="NAME", help="Hugging Face name, or a path that every node has."),
]
EngineName = Annotated[
    str | None, typer.Option("--engine", metavar="E", help="The best of this engine instead of the best of all.")
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("emit")(emit)


def emit(
    plan: PlanFile,
    out: Out,
    platform: PlatformName = "plain",
    served_model: ServedModel = None,
    engine: EngineName = None,
    output: flags.Output = OutputFormat.TABLE,
) -> None:
    """Write the files that start a plan's deployment: launch lines, Dynamo, Triton, Ray Serve or llm-d manifests."""
    from planner.backends.emission.write import write_folder
    from planner.cli.render.tables import bullets
    from planner.serving.engines.engine import Served
    from planner.serving.platforms.registry import write_deployment
    from planner.serving.problem import longest_tokens

    found = read_plan(plan)
    problem, deployment = found.problem, _chosen(found, engine)
    served = Served(
        model=served_model or problem.model.name,
        weights=problem.checkpoint,
        experts=problem.expert_checkpoint,
        longest_tokens=longest_tokens(problem.traffic),
    )
    folder = write_deployment(deployment, problem.model, problem.cluster, platform, served)
    written = write_folder(folder.files, folder.executables, folder.manifest, out)
    lines = [
        f"{written}: {', '.join(sorted(folder.files))}",
        f"start: {folder.manifest['launch_command']}",
        *folder.notes,
    ]
    data = {"directory": str(written), "files": sorted(folder.files), "manifest": folder.manifest}
    write_answer(data, output, lambda: [bullets([*lines, f"next: meshwright serving check {written}"])])


def _chosen(found: ServingPlan, engine: str | None) -> Deployment:
    """The best deployment, or the best of an engine.  Raises NotFound."""
    lines = (found.best, *found.runners_up)
    chosen = next((each for each in lines if engine in {None, each.deployment.engine}), None)
    if chosen is None:
        known = ", ".join(dict.fromkeys(each.deployment.engine for each in lines))
        raise NotFound(f"the plan has no deployment of {engine}", where="--engine", hint=f"it has {known}")
    return chosen.deployment
