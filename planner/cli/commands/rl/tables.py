"""What both commands of RL print of a deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

    from planner.rl.deployment import RlDeployment
    from planner.rl.plan import RankedRl

SHOWN = ("tp", "pp", "cp", "ep", "dp")
"""Degrees of the trainer that are told; those of one are left out."""


def deployment_words(deployment: RlDeployment) -> str:
    """One line: who generates, who trains."""
    group, trainer = deployment.rollout, deployment.trainer
    ways = (
        ", ".join(f"{name}={trainer.strategy[name]}" for name in SHOWN if trainer.strategy[name] != 1) or "one device"
    )
    spread = f", ep={group.layout.ep}" if group.layout.ep > 1 else ""
    engines = f"{group.num_instances} x {deployment.engine} tp={group.layout.tp}{spread}"
    if deployment.placement == "colocated":
        return f"colocated: {engines}; {trainer.trainer} {ways}"
    kind = deployment.synchrony.replace("_", " ")
    return (
        f"split, {kind}: {group.num_devices:,} devices generate ({engines}), {trainer.num_devices:,} train"
        f" ({trainer.trainer} {ways})"
    )


def stage_table(ranked: RankedRl) -> Table:
    """Seconds by stage."""
    from planner.answers.views.words import percent, seconds
    from planner.cli.render.tables import table
    from planner.rl.words import STAGE_WORDS

    step_s = ranked.prediction.step_s
    rows = [
        (STAGE_WORDS[stage], seconds(taken), percent(taken / step_s))
        for stage, taken in ranked.prediction.stages_s.items()
    ]
    return table("", ("stage", ">seconds", ">of the step"), rows)
