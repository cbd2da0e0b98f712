"""MaxText's checkpoints: Orbax restores every array with the sharding of the new mesh.

Read at AI-Hypercomputer/maxtext e591f30c.
"""

from __future__ import annotations

from planner.backends.resuming import LAYOUT, CheckpointFormat, Reshaping, Resuming

RESUMING = Resuming(
    (
        CheckpointFormat(
            "Orbax",
            frozenset({0, 1, 2, 3}),
            (
                # Layers of a pipeline are stacked by stage: other stages are arrays of another shape.
                Reshaping(
                    LAYOUT - {"pp", "vpp"},
                    "AI-Hypercomputer/maxtext e591f30c src/maxtext/common/checkpointing.py:527-573",
                ),
            ),
        ),
    ),
)
