"""Plans for Ascend: the same random plans, on devices that MindSpeed runs on."""

from __future__ import annotations

from planner.plan.plan import Plan
from planner.strategy.strategy import Strategy
from profiles.cluster import Cluster
from tests.plan_factory import make_cluster


def ascend_cluster(num_devices: int = 8, architecture: str = "ascend910b") -> Cluster:
    """Nodes of Ascend devices."""
    return _renamed(make_cluster(num_devices), architecture)


def on_ascend(plan: Plan, architecture: str = "ascend910b") -> Plan:
    """The plan on Ascend devices instead of its own."""
    problem = plan.problem.model_copy(update={"cluster": _renamed(plan.problem.cluster, architecture)})
    return plan.model_copy(update={"problem": problem})


def in_bf16_with_adam(plan: Plan) -> Plan:
    """The plan without the number formats and optimizers that the release refuses whatever the strategy."""
    changes = {"precision": "bf16", "optimizer": "adam"}
    problem = plan.problem.model_copy(update={"workload": plan.problem.workload.model_copy(update=changes)})
    return plan.model_copy(update={"problem": problem})


def _renamed(cluster: Cluster, architecture: str) -> Cluster:
    pools = tuple(
        pool.model_copy(
            update={"device": pool.device.model_copy(update={"vendor": "Huawei", "architecture": architecture})}
        )
        for pool in cluster.pools
    )
    return cluster.model_copy(update={"pools": pools})


DUALPIPEV = Strategy(
    pp=2,
    vpp=2,
    schedule="dualpipev",
    num_microbatches=4,
    overlap_grad_reduce=False,
    overlap_param_gather=False,
)
INTERLEAVED = Strategy(pp=4, vpp=2, schedule="interleaved", microbatch_group_size=4, num_microbatches=8)
