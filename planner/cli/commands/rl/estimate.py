"""``meshwright rl estimate``: the step of a deployment that somebody runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from planner.cli import options as common
from planner.cli.commands.rl import flags
from planner.cli.commands.rl.tables import deployment_words, stage_table
from planner.cli.output import OutputFormat, talk, write_answer
from planner.operations.service import opened_service

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.rl.plan import RankedRl

Placement = Annotated[str, typer.Option("--placement", metavar="P", help="colocated or split.")]
Synchrony = Annotated[
    str, typer.Option("--synchrony", metavar="S", help="synchronous, one_step_off or asynchronous (split).")
]
RolloutDevices = Annotated[
    int | None, typer.Option("--rollout-devices", metavar="N", help="Split: devices that generate (default: half).")
]
RolloutTp = Annotated[
    int | None, typer.Option("--rollout-tp", metavar="N", help="Devices of an engine instance (default: the best).")
]
Strategy = Annotated[
    str | None, typer.Option("--strategy", metavar="K=V,...", help="The trainer's, for example tp=4,pp=2.")
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("estimate")(estimate)


def estimate(  # noqa: PLR0913, PLR0917  # a flag is an argument
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
    placement: Placement = "colocated",
    synchrony: Synchrony = "synchronous",
    rollout_devices: RolloutDevices = None,
    rollout_tp: RolloutTp = None,
    strategy: Strategy = None,
    staleness: flags.Staleness = None,
    trainer: flags.Trainer = None,
    out: flags.Out = None,
    model_path: flags.ModelPath = None,
    server: common.Server = None,
    output: common.Output = OutputFormat.TABLE,
) -> None:
    """Predict a step of RL, stage by stage, of the deployment that you run."""
    from planner.operations.rl import RL_ESTIMATE, RlEstimateRequest, asked_rl
    from planner.strategy.text import parse_assignments
    from profiles.validation import read_document

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
        placements=["colocated", "split"],
        synchrony=["synchronous", "one_step_off", "asynchronous"],
        staleness=staleness,
        trainers=trainer,
        placement=placement,
        synchrony_asked=synchrony,
        rollout_devices=rollout_devices,
        rollout_tp=rollout_tp,
        strategy=parse_assignments([strategy], "--strategy") if strategy else None,
    )
    asked = read_document(RlEstimateRequest, data, where)
    with opened_service(server) as service:
        found = service.call(RL_ESTIMATE, asked)
    if out is not None:
        written = flags.write_verl(asked_rl(asked), found.deployment, out, model_path or str(data["model"]))
        talk(f"launch files for verl in {written}; check them with `meshwright rl check {written}`")
    write_answer(found.model_dump(mode="json"), output, lambda: _tables(found))


def _tables(found: RankedRl) -> Iterator[RenderableType]:
    from rich.text import Text

    from planner.answers.views.words import percent, seconds

    told = found.prediction
    yield Text(deployment_words(found.deployment), style="bold")
    yield Text(
        f"a step takes {seconds(told.step_s)}, {told.tokens_per_s_per_device:,.0f} tokens/s a device;"
        f" engines idle {percent(told.engines_idle)}, trainer idle {percent(told.trainer_idle)}"
    )
    yield stage_table(found)
