"""Writes a Megatron-LM run: ``megatron.args`` + ``data.args`` + ``train.sh`` + launcher files."""

from __future__ import annotations

from planner.backends.emission.emission import BackEndFiles
from planner.backends.emission.refusal import refused
from planner.backends.megatron.arguments import ARGUMENTS_FILE, Section, Words, write_arguments
from planner.backends.megatron.dispatcher import FLEX, TITLES, dispatcher_reason
from planner.backends.megatron.environment import environment
from planner.backends.megatron.flags import layer_offload, sections
from planner.backends.megatron.space import TABLE
from planner.backends.megatron.spelling import overlap_tp_problem
from planner.backends.megatron.token_mixers import way
from planner.backends.megatron.version import MEGATRON_CORE_VERSION
from planner.backends.megatron.vocabulary import padded_vocabulary, padding_parameters
from planner.backends.rules.fp8_parameters import weights_kept
from planner.backends.rules.optimizer_recipe import (
    BETAS,
    CLIP_GRADIENT_NORM,
    EPSILON,
    LEARNING_RATE,
    WEIGHT_DECAY,
    short,
)
from planner.backends.rules.rule import mixture, rule_input, used_kinds
from planner.plan.plan import Plan

DATA_FILE = "data.args"
TRAIN_SCRIPT = "train.sh"


def read_arguments(arguments_file: str) -> str:
    """The lines of ``train.sh`` that read the plan's arguments and the user's into ``arguments``."""
    return f"""arguments=()
for file in "$here/{arguments_file}" "$DATA_ARGS"; do
  while read -r -a words || [ "${{#words[@]}}" -gt 0 ]; do
    case "${{words[0]-}}" in ''|'#'*) continue ;; esac
    arguments+=("${{words[@]}}")
  done < "$file"
done
"""


_TRAIN_SH = f"""#!/usr/bin/env bash
# Runs once for each rank; launch.sh starts it.  The plan is in {ARGUMENTS_FILE}: do not edit it.
#
#   MEGATRON_PATH   directory of Megatron-LM (holds pretrain_gpt.py)
#   DATA_ARGS       YOUR tokenizer, data, learning rate, checkpoints: a file like {DATA_FILE}, which trains on mock data
set -euo pipefail
here=$(cd -- "$(dirname -- "${{BASH_SOURCE[0]}}")" && pwd)
MEGATRON_PATH=${{MEGATRON_PATH:?set MEGATRON_PATH to a checkout of Megatron-LM (core {MEGATRON_CORE_VERSION})}}
DATA_ARGS=${{DATA_ARGS:-$here/{DATA_FILE}}}

{read_arguments(ARGUMENTS_FILE)}
export PYTHONPATH="$MEGATRON_PATH${{PYTHONPATH:+:$PYTHONPATH}}"
exec python -u "$MEGATRON_PATH/pretrain_gpt.py" "${{arguments[@]}}" "$@"
"""


def write(plan: Plan, version: str) -> BackEndFiles:
    """The files that every rank needs.

    Raises BackEndRefused with every violated rule when Megatron cannot run the plan.
    """
    findings = TABLE.violations(rule_input(plan))
    if findings:
        raise refused(f"Megatron-LM {MEGATRON_CORE_VERSION}", "megatron", findings)
    architecture = plan.problem.cluster.pools[0].device.architecture
    return BackEndFiles(
        files={
            ARGUMENTS_FILE: write_arguments(sections(plan)),
            DATA_FILE: data_arguments(plan),
            TRAIN_SCRIPT: train_script(plan),
        },
        script=TRAIN_SCRIPT,
        version=version,
        versions={"megatron-core": version},
        environment=environment(plan.chosen(), architecture, fine_grained_offload=offloads_modules(plan)),
        executables=frozenset({TRAIN_SCRIPT}),
        assumptions=assumptions(plan),
    )


def train_script(plan: Plan) -> str:
    """``train.sh``; a hybrid pattern has a program of its own."""
    if way(plan.problem.model) != "pattern":
        return _TRAIN_SH
    return _TRAIN_SH.replace("pretrain_gpt.py", "pretrain_hybrid.py")


def offloads_modules(plan: Plan) -> bool:
    """Whether activations are offloaded module by module (and not layer by layer)."""
    return plan.chosen().activation_offload and layer_offload(plan) is None


def data_arguments(plan: Plan) -> str:
    """Stand-ins for what only the user knows; a null tokenizer with the model's vocabulary and mock data."""
    vocabulary = str(plan.problem.model.vocab_size)
    tokenizer = Section(
        "Tokenizer: yours, for example --tokenizer-type HuggingFaceTokenizer and --tokenizer-model PATH",
        {"--tokenizer-type": ("NullTokenizer",), "--vocab-size": (vocabulary,)},
    )
    data = Section("Data: yours, --data-path ... and --split ...", {"--mock-data": ()})
    training = Section(
        "Training: yours, learning rate and its schedule, optimizer, number of steps, checkpoints",
        {"--train-iters": ("20",), **optimizer_numbers(plan), "--eval-iters": ("0",), "--log-interval": ("1",)},
    )
    head = f"# A copy of this file with your own values, named in DATA_ARGS, takes its place (see {TRAIN_SCRIPT}).\n\n"
    return head + write_arguments((tokenizer, data, training))


def optimizer_numbers(plan: Plan) -> dict[str, Words]:
    """Learning rate, betas and the like; Megatron's own defaults are others."""
    numbers: dict[str, Words] = {"--lr": (short(LEARNING_RATE),)}
    if plan.problem.workload.optimizer != "sgd":
        numbers |= {
            "--adam-beta1": (f"{BETAS[0]:g}",),
            "--adam-beta2": (f"{BETAS[1]:g}",),
            "--adam-eps": (short(EPSILON),),
        }
    return numbers | {"--weight-decay": (f"{WEIGHT_DECAY:g}",), "--clip-grad": (f"{CLIP_GRADIENT_NORM:g}",)}


def assumptions(plan: Plan) -> tuple[str, ...]:
    """What must hold for the files to do what the plan says."""
    strategy, model, workload = plan.chosen(), plan.problem.model, plan.problem.workload
    lines = [
        f"Megatron-LM with megatron-core {MEGATRON_CORE_VERSION} and Transformer Engine >= 2.1 is installed.",
        f"Initialisation and learning rate are not part of a plan: {DATA_FILE} has the numbers that all back-ends start"
        " from, and the file in DATA_ARGS takes its place.",
    ]
    padded = padded_vocabulary(model.vocab_size, strategy.tp)
    if padded > model.vocab_size:
        more = max(padding_parameters(plan, stage) for stage in plan.stages)
        lines.append(
            f"Megatron pads the vocabulary from {model.vocab_size} to {padded} rows; up to {more:,} parameters a device"
            " more than the plan counts."
        )
    if strategy.zero_stage >= 2 and strategy.tp * strategy.cp > 1:
        lines.append("Megatron-FSDP with tp or cp > 1 only warns: both want another CUDA_DEVICE_MAX_CONNECTIONS.")
    lines += weights_kept(workload, strategy, "--{}-param-gather")
    lines += overlap_assumptions(plan)
    lines += mixer_assumptions(plan)
    if "activation" in strategy.recompute_modules and any(kind.mlp for kind in used_kinds(model)):
        lines.append("Activation recompute reaches the routed experts only, not the dense layers.")
    if "norm" in strategy.recompute_modules:
        lines.append("Norm recompute reaches norms that Transformer Engine does not fuse into the next matrix.")
    if mixture(model):
        lines += dispatch_assumptions(plan)
    return tuple(lines)


def dispatch_assumptions(plan: Plan) -> tuple[str, ...]:
    """How routed tokens are sent, why so, and what that needs."""
    s, title = plan.chosen(), TITLES[plan.chosen().dispatcher]
    lines = [f"Tokens go to experts without a capacity limit (dropless, {title} dispatcher)."]
    if s.ep > 1:
        lines.append(f"Dispatcher {s.dispatcher}: {dispatcher_reason(rule_input(plan))}.")
    if s.dispatcher in FLEX:
        lines.append(
            f"{title} (package deep_ep) is installed; beyond a node it writes through InfiniBand or RoCE NICs with"
            " adaptive routing off. Its buffers are not counted. Without it: --pin dispatcher=alltoall."
        )
    return tuple(lines)


def mixer_assumptions(plan: Plan) -> tuple[str, ...]:
    """What the kernels of other token mixers need, and what their time stands on."""
    needs = {
        "gated_delta_net": "flash-linear-attention and causal-conv1d are installed (gated DeltaNet).",
        "pattern": "mamba-ssm and causal-conv1d are installed (Mamba-2).",
        "dsa": "fast_hadamard_transform is installed (DSA); YOURS: --dsa-indexer-loss-coeff, without which nothing"
        " trains the indexer.",
    }
    said = needs.get(way(plan.problem.model))
    return () if said is None else (said, "Times of these layers are a roofline's: no profile holds their kernels.")


def overlap_assumptions(plan: Plan) -> tuple[str, ...]:
    """Why tensor-parallel overlap is not asked for, where somebody would look for it."""
    strategy, given = plan.chosen(), rule_input(plan)
    why = overlap_tp_problem(given)
    if why is None or strategy.overlap_tp or not (strategy.sp and strategy.tp > 1):
        return ()
    return (f"No --tp-comm-overlap, and none counted: {why}.",)
