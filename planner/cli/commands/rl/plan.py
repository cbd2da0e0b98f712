"""``meshwright rl plan``: the best deployment for a step of RL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from planner.cli import options as common
from planner.cli.commands.rl import flags
from planner.cli.commands.rl.tables import deployment_words, stage_table
from planner.cli.output import OutputFormat, talk, write_answer
from planner.cli.problem_inputs import positive
from planner.operations.service import opened_service

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.rl.plan import RankedRl, RlPlan


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("plan")(plan)


def plan(  # noqa: PLR0913, PLR0917  # a flag is an argument
    file: flags.Question = None,
    model: flags.Model = None,
    cluster: flags.Cluster = None,
    devices: common.Devices = None,
    algorithm: flags.Algorithm = None,
    prompts: flags.Prompts = None,
    samples: flags.Samples = None,
    prompt_tokens: flags.PromptTokens = None,
    response_tokens: flags.ResponseTokens = None,
    longest_response: flags.Longest = None,
    mini_batches: flags.MiniBatches = None,
    placement: flags.Placement = None,
    synchrony: flags.Synchrony = None,
    staleness: flags.Staleness = None,
    trainer: flags.Trainer = None,
    time_limit: common.TimeLimit = None,
    out: flags.Out = None,
    model_path: flags.ModelPath = None,
    server: common.Server = None,
    quiet: common.Quiet = False,
    output: common.Output = OutputFormat.TABLE,
) -> None:
    """Which devices generate and which train, and in which layouts, so that a step of RL is shortest."""
    positive(time_limit, "--time-limit")
    data, where = flags.question_data(
        file,
        model=model,
        cluster=cluster,
        devices=devices,
        algorithm=algorithm,
        prompts=prompts,
        samples_per_prompt=samples,
        prompt_tokens=prompt_tokens,
        response_tokens=response_tokens,
        longest_response=longest_response,
        mini_batches=mini_batches,
        placements=placement,
        synchrony=synchrony,
        staleness=staleness,
        trainers=trainer,
        time_limit_s=time_limit,
    )
    from planner.operations.rl import RL_PLAN, RlRequest, asked_rl
    from profiles.validation import read_document

    asked = read_document(RlRequest, data, where)
    if server is None:
        problem = asked_rl(asked)
        talk(f"checked: {problem.actor.name} on {problem.cluster.num_devices:,} devices", quiet=quiet)
    with opened_service(server) as service:
        found = service.call(RL_PLAN, asked)
    talk(f"played {found.num_evaluated} of {found.num_divisions} divisions of the devices", quiet=quiet)
    if out is not None:
        written = flags.write_verl(asked_rl(asked), found.best.deployment, out, model_path or str(data["model"]))
        talk(f"launch files for verl in {written}; check them with `meshwright rl check {written}`", quiet=quiet)
    write_answer(found.model_dump(mode="json", exclude={"problem"}), output, lambda: _tables(found))


def _tables(found: RlPlan) -> Iterator[RenderableType]:
    from rich.text import Text

    from planner.answers.views.words import percent, seconds
    from planner.cli.render.tables import bullets, heading, table

    problem, best = found.problem, found.best
    yield Text(
        f"{problem.algorithm} of {problem.actor.name} on {problem.cluster.num_devices:,} devices of"
        f" {problem.cluster.name}: {deployment_words(best.deployment)}",
        style="bold",
    )
    yield Text(
        f"a step of {problem.num_samples:,} samples takes {seconds(best.prediction.step_s)},"
        f" {best.prediction.tokens_per_s_per_device:,.0f} tokens/s a device; no division of the devices is faster than"
        f" {seconds(found.lower_bound_s)} (gap {percent(found.gap)}) in the model of a step"
    )
    yield heading("Stages")
    yield stage_table(best)
    yield heading("Why")
    yield bullets(found.reasons)
    if found.runners_up:
        yield heading("Beside it")
        head = ("deployment", ">step", ">slower", ">engines idle", ">trainer idle")
        yield table("", head, [_row(each) for each in (best, *found.runners_up)])


def _row(each: RankedRl) -> tuple[str, ...]:
    from planner.answers.views.words import percent, seconds

    told = each.prediction
    return (
        deployment_words(each.deployment),
        seconds(told.step_s),
        f"+{percent(each.slower_by)}" if each.slower_by else "",
        percent(told.engines_idle),
        percent(told.trainer_idle),
    )
