"""One way to go on after devices came or went: how fast it trains, what must move, and what that does to the run.

The state comes from devices that stay where they hold all of it, over the links of the fabric; where a part is lost,
the steps since the last checkpoint are lost with it, and all of it is read from the checkpoint::

    read = max(checkpoint / bandwidth of the storage, state of the fullest node / NICs of a node)
    converted first: 2 x checkpoint / bandwidth of the storage, read and written once

All are lower bounds.  Loading programs, joining ranks and compiling take as long for every option and are left out.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from planner.answers.replan.keep import Placed
from planner.answers.replan.lost import Allocation
from planner.answers.replan.resharding import Resharding, resharding
from planner.answers.replan.resume import CheckpointUse, LossChange, checkpoint_use, keeps_curve, loss_changes
from planner.backends.asked import physics_of
from planner.backends.resuming import Keeps
from planner.model.parameters import total_parameters
from planner.plan.plan import Plan
from planner.predict.memory.states import checkpoint_bytes
from profiles.document import Document

OptionName = Literal["keep", "keep, nearest batch", "fastest"]
AXES = ("tp", "cp", "pp", "vpp", "ep", "etp", "dp_replicate", "dp_shard", "zero_stage")
"""What decides where state lies."""


class AxisChange(Document):
    """One axis before and after; ``kept`` = checkpoints and groups along it stay as they are."""

    axis: str
    before: int
    after: int
    kept: bool


class Move(Document):
    """How the state gets to where it is needed, and how long that takes at the least."""

    source: Literal["peers", "checkpoint"] = Field(description="devices that stay, or storage because a part is lost")
    bytes: int
    seconds: float = Field(description="lower bound, conversion included")
    conversion_s: float = Field(description="of it, a checkpoint that has to be converted first")
    slowest_link: str


class ReplanOption(Document):
    """One new plan beside the old one."""

    name: OptionName
    plan_id: str
    strategy: dict[str, Any]
    devices: int
    idle_devices: int = Field(description="good devices that it leaves unused")
    devices_kept: int
    devices_per_node: int
    global_batch_size: int
    step_time_s: float
    lower_bound_s: float | None = Field(
        description="no plan of these devices is faster; of a kept layout, none with it"
    )
    tokens_per_s: float
    slower_by: float = Field(description="time a token over that of the old plan, minus one; negative = faster")
    axes: tuple[AxisChange, ...]
    layout_kept: bool = Field(description="no axis changed and each stage keeps its layers")
    resharding: Resharding
    move: Move
    checkpoint: CheckpointUse
    loss_curve: Keeps = Field(description="whether the run trains on as it would have: the worst of loss_changes")
    loss_changes: tuple[LossChange, ...]
    notes: tuple[str, ...] = ()


def option(name: OptionName, old: Plan, placed: Placed, storage_bytes_per_s: float | None) -> ReplanOption:
    """The way to go on that a new plan on some of the devices is."""
    new, allocation = placed.plan, placed.allocation
    origins = allocation.origins(old.problem.cluster.pools[0].devices_per_node, old.chosen().world_size)
    moved = resharding(old, new, origins)
    loads, changes = checkpoint_use(old, new), loss_changes(old, new)
    axes = tuple(_axis(axis, old, new) for axis in AXES)
    same_stages = [stage.chunks for stage in old.stages] == [stage.chunks for stage in new.stages]
    return ReplanOption(
        name=name,
        plan_id=new.plan_id,
        strategy=new.strategy,
        devices=new.chosen().world_size,
        idle_devices=allocation.good_devices - new.chosen().world_size,
        devices_kept=sum(origin is not None for origin in origins),
        devices_per_node=allocation.devices_per_node,
        global_batch_size=new.problem.workload.global_batch_size,
        step_time_s=new.step_time_s,
        lower_bound_s=new.lower_bound_s,
        tokens_per_s=new.tokens_per_s,
        slower_by=old.tokens_per_s / new.tokens_per_s - 1,
        axes=axes,
        layout_kept=same_stages and all(axis.kept for axis in axes),
        resharding=moved,
        move=_move(old, new, moved, loads, storage_bytes_per_s),
        checkpoint=loads,
        loss_curve=keeps_curve(changes),
        loss_changes=changes,
        notes=_notes(old, allocation),
    )


def _move(old: Plan, new: Plan, moved: Resharding, loads: CheckpointUse, storage: float | None) -> Move:
    if moved.lost_bytes == 0:
        return Move(
            source="peers",
            bytes=moved.moved_bytes,
            seconds=moved.seconds,
            conversion_s=0.0,
            slowest_link=moved.slowest_link,
        )
    size = _checkpoint_size(old, moved)
    pool = new.problem.cluster.pools[0]
    nics = pool.nics_per_node * pool.nic_bandwidth_bytes_per_s
    by_nics, by_storage = (moved.fullest_node_bytes / nics if nics else 0.0), (size / storage if storage else 0.0)
    conversion = 2 * by_storage if loads.loads == "once converted" else 0.0
    return Move(
        source="checkpoint",
        bytes=size,
        seconds=max(by_nics, by_storage) + conversion,
        conversion_s=conversion,
        slowest_link="storage" if by_storage >= by_nics else "NICs of a node",
    )


def _checkpoint_size(plan: Plan, moved: Resharding) -> int:
    """Bytes of a whole checkpoint; the state alone where weights are frozen, whose checkpoints are not known here."""
    workload = plan.problem.workload
    if workload.trained.holds_frozen:
        return moved.state_bytes
    offloaded = any(stage.offload.optimizer for stage in plan.stages)
    each = checkpoint_bytes(workload, plan.chosen().zero_stage, offloaded, physics_of(plan))
    return round(total_parameters(plan.problem.model) * each)


def _notes(old: Plan, allocation: Allocation) -> tuple[str, ...]:
    whole = old.problem.cluster.pools[0].devices_per_node
    equal = "a back-end starts the same number of processes on each node"
    notes = []
    if allocation.left_out:
        named = ", ".join(str(node) for node in allocation.left_out)
        notes.append(f"nodes left out although they have good devices: {named}; {equal}")
    if allocation.is_part and allocation.devices_per_node < whole:
        odd = "; ".join(
            f"node {node}: {', '.join(str(device) for device in used)}"
            for node, used in zip(allocation.nodes, allocation.used, strict=True)
            if used != tuple(range(len(used)))
        )
        notes.append(
            f"every node is used with {allocation.devices_per_node} of its {whole} devices: {equal}; devices to make"
            f" visible where they are not the first ones: {odd or 'none'}"
        )
    return tuple(notes)


def _axis(name: str, old: Plan, new: Plan) -> AxisChange:
    before, after = int(old.strategy[name]), int(new.strategy[name])
    return AxisChange(axis=name, before=before, after=after, kept=before == after)
