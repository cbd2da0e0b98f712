"""The script that runs on every rank: ``train.sh``, torchtitan's own trainer on the emitted configuration."""

from __future__ import annotations

from planner.backends.rules.optimizer_recipe import LEARNING_RATE, short
from planner.backends.torchtitan.version import TOML_VERSION

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


def train_script(version: str) -> str:
    """The text, the same for every plan."""
    rate = "" if version == TOML_VERSION else f"#   LEARNING_RATE  of AdamW (default: {short(LEARNING_RATE)})\n"
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
exec "${{PYTHON:-python}}" -u -m torchtitan.train {" ".join(ARGUMENTS[version])} ${{words[@]+"${{words[@]}}"}} "$@"
"""
