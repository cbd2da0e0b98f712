"""Writes a MindSpeed run: ``mindspeed.args`` + ``data.args`` + ``train.sh`` + ``pretrain_npu.py``."""

from __future__ import annotations

from planner.backends.emission.emission import BackEndFiles
from planner.backends.emission.refusal import refused
from planner.backends.megatron.arguments import write_arguments
from planner.backends.megatron.write import DATA_FILE, TRAIN_SCRIPT, data_arguments, read_arguments
from planner.backends.mindspeed.environment import environment
from planner.backends.mindspeed.flag_table import CORE_VERSION
from planner.backends.mindspeed.flags import sections
from planner.backends.mindspeed.space import TABLE
from planner.backends.rules.rule import mixtures, rule_input
from planner.plan.plan import Plan

ARGUMENTS_FILE = "mindspeed.args"
PRETRAIN_SCRIPT = "pretrain_npu.py"
MINDSPEED_BRANCH = "core_r0.12.1"

_TRAIN_SH = f"""#!/usr/bin/env bash
# Runs once for each rank; launch.sh starts it.  The plan is in {ARGUMENTS_FILE}: do not edit it.
#
#   MEGATRON_PATH   directory of Megatron-LM {CORE_VERSION} (holds pretrain_gpt.py)
#   MINDSPEED_PATH  directory of MindSpeed, branch {MINDSPEED_BRANCH}; leave it out where MindSpeed is installed
#   DATA_ARGS       YOUR tokenizer, data, learning rate, checkpoints: a file like {DATA_FILE}, which trains on mock data
#   CANN_SETUP      CANN's set_env.sh, sourced where it exists
set -euo pipefail
here=$(cd -- "$(dirname -- "${{BASH_SOURCE[0]}}")" && pwd)
export MEGATRON_PATH=${{MEGATRON_PATH:?set MEGATRON_PATH to a checkout of Megatron-LM {CORE_VERSION}}}
DATA_ARGS=${{DATA_ARGS:-$here/{DATA_FILE}}}
CANN_SETUP=${{CANN_SETUP:-/usr/local/Ascend/ascend-toolkit/set_env.sh}}

{read_arguments(ARGUMENTS_FILE)}
if [ -f "$CANN_SETUP" ]; then
  set +u
  . "$CANN_SETUP"
  set -u
fi
export PYTHONPATH="$MEGATRON_PATH${{MINDSPEED_PATH:+:$MINDSPEED_PATH}}${{PYTHONPATH:+:$PYTHONPATH}}"
exec python -u "$here/{PRETRAIN_SCRIPT}" "${{arguments[@]}}" "$@"
"""

_PRETRAIN_PY = '''\
"""Runs Megatron-LM's pretrain_gpt.py on Ascend; MindSpeed patches Megatron before its first import."""

import os
import runpy

import torch  # noqa: F401
import mindspeed.megatron_adaptor  # noqa: F401

runpy.run_path(os.path.join(os.environ["MEGATRON_PATH"], "pretrain_gpt.py"), run_name="__main__")
'''


def write(plan: Plan, version: str) -> BackEndFiles:
    """The files that every rank needs.

    Raises BackEndRefused with every violated rule when MindSpeed cannot run the plan.
    """
    findings = TABLE.violations(rule_input(plan))
    if findings:
        raise refused(f"MindSpeed on Megatron-LM {CORE_VERSION}", "mindspeed", findings)
    return BackEndFiles(
        files={
            ARGUMENTS_FILE: write_arguments(sections(plan)),
            DATA_FILE: data_arguments(plan),
            TRAIN_SCRIPT: _TRAIN_SH,
            PRETRAIN_SCRIPT: _PRETRAIN_PY,
        },
        script=TRAIN_SCRIPT,
        version=version,
        versions={"mindspeed": version, "megatron-core": version.removeprefix("core_v")},
        environment=environment(plan.chosen()),
        executables=frozenset({TRAIN_SCRIPT}),
        assumptions=assumptions(plan),
    )


def assumptions(plan: Plan) -> tuple[str, ...]:
    """What must hold for the files to do what the plan says."""
    strategy, model = plan.chosen(), plan.problem.model
    lines = [
        f"Megatron-LM {CORE_VERSION}, MindSpeed branch {MINDSPEED_BRANCH} of July 2026 or later (it has"
        " --pipeline-model-parallel-layout), torch_npu and CANN are installed.",
        "The arguments are for Megatron-LM's pretrain_gpt.py; MindSpeed-LLM's gives some of these flags another"
        " meaning.",
        "Rope scaling, initialisation and learning rate are not part of a plan: Megatron's defaults hold unless the"
        " file in DATA_ARGS says otherwise.",
    ]
    if strategy.zero_stage >= 2 and strategy.tp * strategy.cp > 1:
        lines.append("Megatron's FSDP with tp or cp > 1 only warns: both want another CUDA_DEVICE_MAX_CONNECTIONS.")
    if strategy.activation_offload:
        lines.append("Activation offload swaps norms and attention (--swap-attention), not the MLPs' activations.")
    if mixtures(model):
        lines.append("Tokens go to experts without a capacity limit (dropless, all-to-all dispatcher).")
    return tuple(lines)
