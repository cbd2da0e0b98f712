"""The script that runs on every rank: ``train.sh``, torchtitan's own trainer on the emitted configuration."""

from __future__ import annotations

from planner.backends.rules.optimizer_recipe import LEARNING_RATE, short
from planner.backends.torchtitan.version import PIPELINE_TORCH, TOML_VERSION

TRAIN_SCRIPT = "train.sh"
ARGUMENTS = {
    "0.3.0": ("--module", "titan_plan", "--config", "plan"),
    "0.2.2": ("--job.config_file", "titan.toml"),
}
"""What ``python -m torchtitan.train`` gets, started in the folder of the files."""
_EXAMPLES = {
    "0.3.0": "--hf_assets_path /models/tokenizer --training.steps 1000 --dataloader.dataset c4",
    "0.2.2": "--model.hf_assets_path /models/tokenizer --training.steps 1000 --training.dataset c4",
}


def train_script(version: str, *, pipeline: bool) -> str:
    """The text, the same for every plan with, and for every plan without, a pipeline."""
    rate = "" if version == TOML_VERSION else f"#   LEARNING_RATE  of AdamW (default: {short(LEARNING_RATE)})\n"
    told = " ".join(ARGUMENTS[version])
    look = _torch_check(version) if pipeline else ""
    return f"""#!/usr/bin/env bash
# Runs once for each rank; launch.sh starts it.  Needs torchtitan {version}.
#
#   TRAIN_ARGS     more words for the trainer, for example
#                  "{_EXAMPLES[version]}"
{rate}#   PYTHON         the interpreter with torchtitan installed (default: python)
set -euo pipefail
here=$(cd -- "$(dirname -- "${{BASH_SOURCE[0]}}")" && pwd)
cd -- "$here"
export PYTHONPATH="$here${{PYTHONPATH:+:$PYTHONPATH}}"
read -r -a words <<< "${{TRAIN_ARGS:-}}"
{look}exec "${{PYTHON:-python}}" -u -m torchtitan.train {told} ${{words[@]+"${{words[@]}}"}} "$@"
"""


def _torch_check(version: str) -> str:
    """Lines that end the first rank of each node where pipelines would fail at the first step."""
    if version == TOML_VERSION:
        return ""
    return f"""# Pipelines hand lists of micro-batches to torch, which takes them since pytorch pull request 188500.
if [ "${{LOCAL_RANK:-0}}" = 0 ]; then
  torch=$("${{PYTHON:-python}}" -c 'import importlib.metadata as packages; print(packages.version("torch"))')
  if [ "$(printf '%s\\n' {PIPELINE_TORCH} "$torch" | sort -V | head -n 1)" != {PIPELINE_TORCH} ]; then
    echo "train.sh: pipelines of torchtitan {version} need torch {PIPELINE_TORCH} or newer; this is $torch" >&2
    exit 1
  fi
fi
"""
