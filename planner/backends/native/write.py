"""Writes a native PyTorch run: ``plan.json`` is what the trainer reads; ``train.sh`` starts it."""

from __future__ import annotations

from planner.backends.emission.emission import PLAN_JSON, BackEndFiles
from planner.backends.emission.refusal import refused
from planner.backends.native.capabilities import TORCH_VERSION
from planner.backends.native.space import violations
from planner.backends.rules.rule import mixtures, rule_input
from planner.plan.plan import Plan

TRAINER = "planner.backends.native.trainer.train"
"""What every rank runs; folders of older releases say ``planner.native.train``, which still leads there."""

TRAIN_SCRIPT = "train.sh"
_HEADER = f"""#!/usr/bin/env bash
# Runs once for each rank; launch.sh starts it.  The plan is in {PLAN_JSON}: do not edit it.
#
#   TRAIN_ARGS   words for the trainer, for example "--steps 1000 --learning-rate 1e-4 --data mypackage.loader:tokens";
#                without --data it trains on synthetic tokens.  All of them: python -m {TRAINER} --help
#   PYTHON       the interpreter with meshwright[torch] installed (default: python)
#
# Try it without devices:  TRAIN_ARGS="--device cpu --steps 2"
"""
_BODY = f"""set -euo pipefail
here=$(cd -- "$(dirname -- "${{BASH_SOURCE[0]}}")" && pwd)
read -r -a words <<< "${{TRAIN_ARGS:-}}"
exec "${{PYTHON:-python}}" -u -m {TRAINER} "$here/{PLAN_JSON}" ${{words[@]+"${{words[@]}}"}} "$@"
"""


def write(plan: Plan, version: str) -> BackEndFiles:
    """The files that every rank needs.

    Raises BackEndRefused with every violated rule when the trainer cannot run the plan.
    """
    findings = violations(rule_input(plan))
    if findings:
        raise refused("the native trainer", "native", findings)
    return BackEndFiles(
        files={TRAIN_SCRIPT: _HEADER + _BODY},
        script=TRAIN_SCRIPT,
        version=version,
        versions={"torch": version},
        # Long runs with changing sizes (experts) fragment the allocator without it.
        environment={"PYTORCH_ALLOC_CONF": "expandable_segments:True"},
        executables=frozenset({TRAIN_SCRIPT}),
        assumptions=assumptions(plan),
    )


def assumptions(plan: Plan) -> tuple[str, ...]:
    """What must hold for the files to do what the plan says."""
    strategy, model = plan.chosen(), plan.problem.model
    lines = [
        f"meshwright[torch] with torch {TORCH_VERSION} is installed on every node.",
        "Data, learning rate and number of steps are yours, in TRAIN_ARGS; weights start at random and no checkpoint is"
        " written.",
    ]
    if model.position == "rope":
        lines.append(f"Rotary positions use base {model.rotary_base:g}, without long-context scaling.")
    if strategy.cp_kind == "ring" and strategy.cp > 1:
        lines.append("Ring context parallelism runs as an all-gather of keys and values over a head-tail split.")
    if mixtures(model):
        lines.append(
            "Experts run dropless, one after the other, with the chosen scores normalised to 1 and no balancing loss."
        )
    if strategy.dp * strategy.cp > 1 and strategy.zero_stage in (1, 2):
        lines.append(
            "ZeRO 1 and 2 are FSDP2 without resharding: gathered bf16 parameters stay beside the fp32 shard"
            " from a step's first forward to its end."
        )
    return tuple(lines)
