"""Runs a small plan natively: ``launch.sh`` as emitted; rank 0 then trains the whole model once more alone."""

from __future__ import annotations

import json

from planner.backends.ranks.launch_ranks import LOG_FILE, run_ranks
from planner.backends.ranks.runner import Losses, Runner, SmallRun
from planner.errors import BackEndRefused

RECORD_FILE = "losses.json"
LEARNING_RATE = 1e-2
"""Large enough for a wrong gradient to show in the next loss."""


def losses(run: SmallRun) -> Losses:
    """Losses of the ranks and of the whole model on rank 0.  Raises BackEndRefused when the launch fails."""
    emitted = run.on_ranks()
    record = emitted / RECORD_FILE
    words = (
        f"--device cpu --precision fp32 --steps {run.steps} --learning-rate {LEARNING_RATE:g} --record {RECORD_FILE}"
    )
    ran = run_ranks(emitted, {"TRAIN_ARGS": words}, run.deadline)
    try:
        said = json.loads(record.read_text(encoding="utf-8"))
        pairs = tuple(tuple(float(step["loss"]) for step in said[name]) for name in ("ranks", "single_process"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BackEndRefused(f"the trainer left no losses: {error}", where=str(emitted / LOG_FILE)) from error
    return Losses(pairs[0], pairs[1], ran.notes)


RUNNER = Runner(
    losses=losses,
    requires=("torch",),
    install="pip install 'meshwright[torch]'",
    edits={"precision": ("bf16", "fp32"), "device": ("cuda", "cpu")},
)
