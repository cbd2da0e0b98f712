"""Writes a plan as a MaxText run: one config, one script a node, the launcher's files."""

from __future__ import annotations

from planner.backends.emission.emission import BackEndFiles
from planner.backends.emission.refusal import refused
from planner.backends.maxtext.config import config, config_text
from planner.backends.maxtext.decoder_blocks import LLAMA_FACTOR, DecoderBlock, balancing_keys, decoder_block
from planner.backends.maxtext.hardware import environment, is_tpu
from planner.backends.maxtext.space import violations
from planner.backends.maxtext.version import CONFIG_FILE, MAXTEXT_VERSION, TRAIN_MODULE, TRAIN_SCRIPT
from planner.backends.rules.rule import mixtures, rule_input
from planner.backends.rules.training_recipe import routing, stretch
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan
from planner.strategy.strategy import Strategy

_HEADER = """#!/usr/bin/env bash
# Runs once on each node and drives all its devices; launch.sh starts it.
#
#   TRAIN_ARGS   key=value words for MaxText, for example "steps=1000 run_name=first base_output_directory=gs://bucket"
#   PYTHON       the interpreter with MaxText installed (default: python)
"""
_COORDINATOR = """
# Process 0 coordinates; the launcher's own port stays free.
export JAX_COORDINATOR_IP="${MASTER_ADDR:-127.0.0.1}"
export JAX_COORDINATOR_PORT="$((${MASTER_PORT:-29500} + 1))"
export NNODES="${WORLD_SIZE:-1}"
export NODE_RANK="${RANK:-0}"
"""


def write(plan: Plan, version: str) -> BackEndFiles:
    """The files that every rank needs.

    Raises BackEndRefused with every violated rule when MaxText cannot run the plan.
    """
    findings = violations(rule_input(plan))
    block = decoder_block(plan.problem.model)
    if findings or block is None:
        raise refused("MaxText", "maxtext", findings)
    tpu = is_tpu(plan.problem.cluster.pools[0].device.architecture)
    return BackEndFiles(
        files={CONFIG_FILE: config_text(config(plan, block)), TRAIN_SCRIPT: train_script(tpu=tpu)},
        script=TRAIN_SCRIPT,
        version=version,
        versions={"maxtext": version},
        environment=environment(plan),
        executables=frozenset({TRAIN_SCRIPT}),
        process_drives_node=True,
        assumptions=_assumptions(plan, block),
    )


def _assumptions(plan: Plan, block: DecoderBlock) -> tuple[str, ...]:
    s, model, tpu = plan.chosen(), plan.problem.model, is_tpu(plan.problem.cluster.pools[0].device.architecture)
    lines = [
        f"maxtext {MAXTEXT_VERSION} and its requirements are installed on every node; one process drives a node.",
        "Weights are random and the data synthetic; set your data under 'Yours' in maxtext.yml, or in TRAIN_ARGS.",
        "Weights are kept in fp32 and cast to bf16 where they are used: there is no separate master copy.",
        "A slice is what talks without a NIC; ici degrees lie inside it, dcn degrees across."
        + (" On TPU, JAX maps the axes to the torus." if tpu else " JAX must report one slice for each of them."),
        "XLA chooses the collectives; PLAN.md names those that the degrees imply.",
    ]
    if s.tp > 1:
        lines.append("sp is a split of activations over their width, not over tokens; norms add a small sum over tp.")
    if s.pp > 1:
        lines.append("Embedding and head are on no stage: every stage holds them and computes a part of the batch.")
    if s.vpp > 1 and s.num_microbatches > s.pp:
        lines.append("The circular pipeline buffers the last stage's outputs of a repeat, which memory does not count.")
    if s.cp > 1 and s.ep > 1:
        lines.append("Expert groups lie along data parallelism, so members of one context group are in different ones.")
    if mixtures(model):
        lines += _balancing_lines(plan, block)
        lines.append("Experts run without capacity limits; load imbalance is not planned for.")
    lines += _recipe_lines(model)
    if tpu and s.world_size > plan.problem.cluster.pools[0].devices_per_node:
        lines.append("The TPU runtime finds its hosts by itself (GKE or a queued resource); MASTER_ADDR is not used.")
    return tuple(lines)


def balancing_weight(s: Strategy, *, by_sequence: bool) -> float:
    """Weight of the balancing loss in a pipeline, as a multiple of the weight that is written.

    ``m / (m + pp - 1)``: MaxText takes the mean over all iterations of the pipeline, those among them in which a
    stage has no micro-batch (maxtext 0.2.5 layers/pipeline.py:870-872, :944-956; trainers/pre_train/train.py:332).
    ``m`` ``by_sequence`` (the loss of sigmoid scores): it is summed over layers, and so over micro-batches.
    """
    busy = s.num_microbatches  # a model with experts has one chunk a stage: rule P5
    return float(busy) if by_sequence else busy / (busy + s.pp - 1)


def _balancing_lines(plan: Plan, block: DecoderBlock) -> list[str]:
    """How the balancing of experts differs from one device's; nothing where no loss balances them."""
    s, recipe = plan.chosen(), routing(plan.problem.model)
    if recipe is None or not recipe.coefficient:
        return []
    by_sequence = "moe_use_megatron_seq_aux_loss" in balancing_keys(recipe, block)
    lines = []
    if s.dp * s.cp > 1 and not by_sequence:
        lines.append("The balancing loss that MaxText prints is one shard's; gradients take the mean over all shards.")
    if s.pp > 1:
        lines.append(
            f"MaxText {'sums' if by_sequence else 'averages'} the balancing loss over all iterations of a pipeline,"
            f" idle ones too: it weighs {balancing_weight(s, by_sequence=by_sequence):.2g} of load_balance_loss_weight."
        )
    return lines


def _recipe_lines(model: ModelSpec) -> list[str]:
    """What was written of the published recipe, and what could not be."""
    lines = []
    recipe, stretched = routing(model), stretch(model)
    if recipe is not None:
        lines.append(
            f"Experts are balanced as published ({recipe.source})."
            if recipe.balancing != "none"
            else f"YOURS: load_balance_loss_weight; as in {recipe.source} nothing balances the experts."
        )
        if recipe.scaling_factor is None:
            lines.append("YOURS: routed_scaling_factor, not known for this size.")
        elif recipe.scaling_factor != 1.0:
            lines.append(f"The routed experts' output is scaled by {recipe.scaling_factor:g}, as in the family.")
    if model.position != "rope":
        return lines
    base = f"Rotary positions use base {model.rotary_base:g}"
    if stretched is None:
        return [*lines, f"{base}, without long-context scaling."]
    if stretched.kind == "llama3" and stretched.factor != LLAMA_FACTOR:
        return [
            *lines,
            f"{base}; MaxText knows Llama-3.1's scaling by 8 only, not by {stretched.factor:g}: none is set.",
        ]
    return [*lines, f"{base}, scaled by {stretched.factor:g} for a long context ({stretched.source})."]


def train_script(*, tpu: bool) -> str:
    """The text of ``train.sh``, which runs on every node: MaxText's trainer, told where process 0 is.

    MaxText reads JAX_COORDINATOR_IP, JAX_COORDINATOR_PORT, NNODES and NODE_RANK on GPUs (maxtext 0.2.5
    utils/max_utils.py:308-345); on TPU the runtime knows its hosts.
    """
    return f"""{_HEADER}set -euo pipefail
here=$(cd -- "$(dirname -- "${{BASH_SOURCE[0]}}")" && pwd)
{"" if tpu else _COORDINATOR}
read -r -a words <<< "${{TRAIN_ARGS:-}}"
exec "${{PYTHON:-python}}" -u -m {TRAIN_MODULE} "$here/{CONFIG_FILE}" ${{words[@]+"${{words[@]}}"}} "$@"
"""
