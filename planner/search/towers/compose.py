"""One step of a language model beside a tower with a layout of its own: time and memory of the two together.

``own_devices`` (MegatronMIMO, non-colocated): the tower is a stage before the language model's pipeline::

    step = makespan(1F1B; tower, bridge, stages)  +  max(late of the language model, late of the tower)

``same_devices`` (colocated; neither has a pipeline): every device does both parts of each micro-batch::

    step = m ( language + tower + bridge )  +  late of the language model  +  late of the tower

The bridge (NVIDIA/Megatron-LM d98e8a64).  Between devices, the first rank of each tower replica sends the tokens to the
first rank of the replicas it feeds, or the other way round, and these broadcast them to their tensor-parallel group;
gradients come back the same way (megatron/core/pipeline_parallel/bridge_communicator.py:20-26, 379-470).  On the same
devices the side with fewer replicas all_gathers along the batch, once a micro-batch
(megatron/core/models/mimo/comm/colocated_communicator.py:21-34).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.plan.plan import Plan
from planner.predict.cost.hardware import Hardware
from planner.predict.schedule.paths import ChunkTimes
from planner.predict.schedule.run import run_pipeline
from planner.search.towers.tower_cost import TowerBill, TowerLayout


@dataclass(frozen=True, slots=True)
class Together:
    """A plan of the language model with a tower: seconds of a step, and bytes of the fullest device of each."""

    language: Plan
    tower: TowerBill
    in_flight: int
    bridge_s: float
    step_s: float
    language_bytes: float
    tower_bytes: float

    @property
    def peak_bytes(self) -> float:
        """Of the fullest device."""
        return max(self.language_bytes, self.tower_bytes)


def on_own_devices(plan: Plan, tower: TowerBill, hardware: Hardware, sample_bytes: float) -> Together:
    """The tower as a stage before the language model's; ``hardware`` is of all devices."""
    stages, microbatches = len(plan.stages), int(plan.strategy["num_microbatches"])
    bridge_s = between_devices_s(tower.layout, plan.strategy, hardware, sample_bytes)
    makespan_s = _makespan_s(plan, tower, bridge_s)
    late_s = max(plan.step_time_s - _makespan_s(plan), tower.late_s)
    in_flight = min(stages + 1, microbatches)
    return Together(
        language=plan,
        tower=tower,
        in_flight=in_flight,
        bridge_s=bridge_s,
        step_s=makespan_s + late_s,
        language_bytes=float(plan.peak_memory_bytes),
        tower_bytes=tower.total_bytes(in_flight),
    )


def on_same_devices(plan: Plan, tower: TowerBill, hardware: Hardware, sample_bytes: float) -> Together:
    """The tower on the devices of a language model without a pipeline."""
    microbatches = int(plan.strategy["num_microbatches"])
    bridge_s = within_devices_s(tower.layout, plan.strategy, hardware, sample_bytes)
    held = plan.peak_memory_bytes + tower.beside_bytes(1)
    return Together(
        language=plan,
        tower=tower,
        in_flight=1,
        bridge_s=bridge_s,
        step_s=plan.step_time_s + microbatches * (tower.microbatch_s + bridge_s) + tower.late_s,
        language_bytes=held,
        tower_bytes=held,
    )


def between_devices_s(
    layout: TowerLayout, language: dict[str, object], hardware: Hardware, sample_bytes: float
) -> float:
    """Seconds of one transfer between a tower and a language model on other devices, one micro-batch, one way."""
    dp, tp = int(str(language["dp"])), int(str(language["tp"]))
    sent_bytes = sample_bytes * layout.samples / min(layout.dp, dp)
    received_bytes = sample_bytes * layout.samples / dp
    levels = hardware.levels
    if not levels:
        return 0.0
    beyond = levels[-2].devices_per_group if len(levels) > 1 else 1
    apart = np.array([float(max(layout.devices, beyond))])
    sent_s = hardware.collective_s("send_recv", np.array([sent_bytes]), np.array([2.0]), apart)
    # A broadcast in a ring moves as much as an all_gather of the same tensor.
    spread_s = hardware.collective_s("all_gather", np.array([received_bytes]), np.array([float(tp)]), np.ones(1))
    return float(sent_s[0] + spread_s[0])


def within_devices_s(
    layout: TowerLayout, language: dict[str, object], hardware: Hardware, sample_bytes: float
) -> float:
    """Seconds of the one all_gather of a micro-batch between two layouts of the same devices; 0 of equal ones."""
    dp, tp = int(str(language["dp"])), int(str(language["tp"]))
    if dp == layout.dp:
        return 0.0
    fewer, more = min(dp, layout.dp), max(dp, layout.dp)
    gathered_bytes = np.array([sample_bytes * layout.samples / fewer])
    stride = np.array([float(layout.tp if layout.dp > dp else tp)])
    return float(hardware.collective_s("all_gather", gathered_bytes, np.array([more / fewer]), stride)[0])


def can_share(layout: TowerLayout, language: dict[str, object], *, counted: bool) -> bool:
    """Whether the runtime bridges two layouts of the same devices: their replicas divide each other.

    Samples with unequal numbers of items (``counted``) are not cut apart (colocated_communicator.py:43-46).
    """
    dp = int(str(language["dp"]))
    return dp == layout.dp or (not counted and (dp % layout.dp == 0 or layout.dp % dp == 0))


def can_feed(layout: TowerLayout, language: dict[str, object], *, counted: bool) -> bool:
    """Whether the runtime bridges two layouts of other devices.

    A replica of the language model does not put together unequal samples of several tower replicas
    (megatron/core/models/mimo/model/base.py:534-540).
    """
    return not counted or layout.dp <= int(str(language["dp"]))


def _makespan_s(plan: Plan, tower: TowerBill | None = None, bridge_s: float = 0.0) -> float:
    """The pipeline of the language model, with the tower before it where one is given."""
    forward_s, backward_s = ([getattr(stage, name) for stage in plan.stages] for name in ("forward_s", "backward_s"))
    hops_s: Sequence[float] = [plan.pipeline_hop_s] * (len(plan.stages) - 1)
    if tower is not None:
        forward_s, backward_s = [tower.forward_s, *forward_s], [tower.backward_s, *backward_s]
        hops_s = [bridge_s, *hops_s]
    times = ChunkTimes(np.array(forward_s), np.array(backward_s), np.zeros(len(forward_s)))
    sizes = len(forward_s), 1, int(plan.strategy["num_microbatches"]), 0
    return run_pipeline("1f1b", sizes, times, np.array(hops_s)).makespan_s
