"""What runs on every node?  ``train.sh``: MaxText's trainer, told where process 0 is.

MaxText reads JAX_COORDINATOR_IP, JAX_COORDINATOR_PORT, NNODES and NODE_RANK on GPUs (maxtext 0.2.5
utils/max_utils.py:308-345); on TPU the runtime knows its hosts.
"""

from __future__ import annotations

from planner.backends.maxtext.version import CONFIG_FILE, TRAIN_MODULE

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


def train_script(*, tpu: bool) -> str:
    """The text of ``train.sh``."""
    return f"""{_HEADER}set -euo pipefail
here=$(cd -- "$(dirname -- "${{BASH_SOURCE[0]}}")" && pwd)
{"" if tpu else _COORDINATOR}
read -r -a words <<< "${{TRAIN_ARGS:-}}"
exec "${{PYTHON:-python}}" -u -m {TRAIN_MODULE} "$here/{CONFIG_FILE}" ${{words[@]+"${{words[@]}}"}} "$@"
"""
