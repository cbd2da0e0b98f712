"""Bytes that a device holds whatever its layers; one part depends on the schedule.  Shape letter: R rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.strategy.schedules import SCHEDULE_NAMES
from solver.arrays import Array, Ints


@dataclass(frozen=True, slots=True)
class FixedBytes:
    """What a device holds whatever its layers: [R].

    Only the hand-over between stages and what a loop stores depend on the schedule.
    Where each moment is billed for itself all but ``framework`` is zero.
    """

    framework: Array
    """Framework, communicators, dispatch buffers."""
    entry: Array
    """The tensor between two stages."""
    buffers: Array
    """Buffers of the framework, and a layer's transient tensors."""
    gathered: Array
    """Working copies of ZeRO-2/3, and buckets of gradients."""

    stored: Array
    """Hidden states of all micro-batches, where a loop over all stages stores them between two rounds."""

    def total(self, pp: Ints, vpp: Ints, schedule: Ints, num_microbatches: Ints, group: Ints) -> Array:
        """With ``vpp`` chunks a stage handed over between ``pp`` stages, micro-batches in groups of ``group``: [R].

        An interleaved pipeline frees what it has sent, and holds one tensor to send each way and ``group - pp + 1``
        that it has received (NVIDIA/Megatron-LM@d98e8a64d, core/pipeline_parallel/schedules.py:1555-1567 and 1660;
        deallocate_pipeline_outputs).  Other schedules: two a chunk, a prior.
        """
        looped = schedule == SCHEDULE_NAMES.index("interleaved")
        passed = 2.0 * np.where(looped, np.where(group > 0, group, pp) - pp + 2.0, vpp)
        hand_over = np.where(pp > 1, passed, 0.0) + 4.0
        held: Array = self.framework + hand_over * self.entry + self.buffers + self.gathered
        if not np.any(self.stored):
            return held
        again = (schedule == SCHEDULE_NAMES.index("looped_bfs")) & (vpp > 1) & (num_microbatches > pp)
        return held + np.where(again, self.stored, 0.0)
