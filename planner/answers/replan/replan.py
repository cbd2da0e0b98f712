"""A new plan for other devices: the best one on them, which axes keep their layout, and what must move."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from planner.answers.replan.resharding import Resharding, resharding
from planner.backends.asked import problem_of
from planner.errors import DocumentInvalid
from planner.plan.plan import Plan
from planner.search.find import plan_on_all_devices
from planner.search.options import Progress, SearchOptions
from profiles.document import Document
from profiles.scaling import scale_cluster

AXES = ("tp", "cp", "pp", "vpp", "ep", "etp", "dp_replicate", "dp_shard", "zero_stage")
"""What decides where state lies."""


class AxisChange(Document):
    """One axis before and after; ``kept`` = checkpoints and groups along it stay as they are."""

    axis: str
    before: int
    after: int
    kept: bool


class Replan(Document):
    """The new plan beside the old one."""

    schema_version: int = 1
    old_plan_id: str
    new_plan_id: str
    devices_before: int
    devices_after: int
    devices_kept: int
    axes: tuple[AxisChange, ...]
    layout_kept: bool = Field(description="no axis changed and each stage keeps its layers")
    slower_by: float = Field(description="new step time over the old one, minus one; negative = faster")
    resharding: Resharding
    plan: Plan


def replan(
    plan: Plan,
    *,
    num_devices: int | None = None,
    lost_nodes: Sequence[int] = (),
    options: SearchOptions | None = None,
    progress: Progress | None = None,
) -> Replan:
    """Plan the same problem on other devices of the same kind: ``num_devices`` of them, or without ``lost_nodes``.

    With fewer devices and no names the last nodes are the ones that go; new nodes come after the old ones.
    Raises DocumentInvalid, NoFeasiblePlan, BudgetSpent.
    """
    cluster = plan.problem.cluster
    per_node = cluster.pools[0].devices_per_node
    nodes = -(-cluster.num_devices // per_node)
    lost = sorted(set(lost_nodes))
    if (num_devices is None) == (not lost):
        raise DocumentInvalid(
            "say either how many devices there are or which nodes are lost", where="/devices", hint="give one of them"
        )
    if lost and lost[-1] >= nodes:
        raise DocumentInvalid(
            f"the plan has {nodes} nodes", where="/lost_nodes", hint=f"nodes are counted from 0 to {nodes - 1}"
        )
    if num_devices is None:
        num_devices = (nodes - len(lost)) * per_node
    if num_devices < 1:
        raise DocumentInvalid("no device is left", where="/lost_nodes", hint="name the nodes that are really gone")
    problem = problem_of(plan).model_copy(update={"cluster": scale_cluster(cluster, num_devices)})
    new = plan_on_all_devices(problem, options or SearchOptions(top_k=0), progress)
    kept = [node for node in range(nodes) if node not in set(lost)]
    origins = _origins(plan, new, kept)
    axes = tuple(_axis(name, plan, new) for name in AXES)
    same_stages = [stage.chunks for stage in plan.stages] == [stage.chunks for stage in new.stages]
    return Replan(
        old_plan_id=plan.plan_id,
        new_plan_id=new.plan_id,
        devices_before=plan.chosen().world_size,
        devices_after=new.chosen().world_size,
        devices_kept=sum(origin is not None for origin in origins),
        axes=axes,
        layout_kept=same_stages and all(axis.kept for axis in axes),
        slower_by=new.step_time_s / plan.step_time_s - 1,
        resharding=resharding(plan, new, origins),
        plan=new,
    )


def _origins(old: Plan, new: Plan, kept_nodes: Sequence[int]) -> list[int | None]:
    """For each new rank the old rank of its device: nodes that stay close ranks, new ones follow."""
    per_node = old.problem.cluster.pools[0].devices_per_node
    world = old.chosen().world_size
    origins: list[int | None] = []
    for rank in range(new.chosen().world_size):
        node, device = divmod(rank, new.problem.cluster.pools[0].devices_per_node)
        origin = kept_nodes[node] * per_node + device if node < len(kept_nodes) else world
        origins.append(origin if origin < world else None)
    return origins


def _axis(name: str, old: Plan, new: Plan) -> AxisChange:
    before, after = int(old.strategy[name]), int(new.strategy[name])
    return AxisChange(axis=name, before=before, after=after, kept=before == after)
