"""The axis of a plan that a collective belongs to: by the ranks of its group, else by its operation."""

from __future__ import annotations

from functools import cached_property

from planner.plan.plan import Plan
from planner.strategy.mesh import Mesh, build_mesh
from profiles.importers.kineto.activities import Activity

OTHER = "other"
"""Groups that are none of the plan's: the whole world for a loss, or unknown."""
_OF_DENSE = (
    ({"tp"}, "tp"),
    ({"cp"}, "cp"),
    ({"pp"}, "pp"),
    ({"dp_shard", "dp_replicate", "cp"}, "dp"),
)
_OF_EXPERT = (({"ep", "etp"}, "ep"), ({"edp_shard", "edp_replicate"}, "dp"))


class PlanAxes:
    """Where the ranks of a plan stand."""

    def __init__(self, plan: Plan) -> None:
        self.strategy = plan.chosen()
        self._cluster = plan.problem.cluster
        self._known: dict[tuple[tuple[int, ...], str], str] = {}

    @cached_property
    def _mesh(self) -> Mesh:
        return build_mesh(self.strategy, self._cluster)

    @property
    def world_size(self) -> int:
        """Ranks of the plan."""
        return self.strategy.world_size

    def stage(self, rank: int) -> int | None:
        """The pipeline stage of a rank; None outside the plan."""
        if not 0 <= rank < self.world_size:
            return None
        return self._mesh.coordinates(rank)["pp"]

    def group_size(self, axis: str) -> int:
        """Ranks of a group of an axis."""
        strategy = self.strategy
        sizes = {"tp": strategy.tp, "cp": strategy.cp, "ep": strategy.ep, "pp": strategy.pp, "dp": strategy.dp}
        return sizes.get(axis, self.world_size)

    def axis(self, activity: Activity) -> str:
        """``tp``, ``cp``, ``ep``, ``dp``, ``pp``, or ``other``."""
        key = (activity.group.ranks, activity.name)
        if key not in self._known:
            self._known[key] = self._by_ranks(*key) if key[0] else self._by_operation(activity.name)
        return self._known[key]

    def _by_ranks(self, ranks: tuple[int, ...], operation: str) -> str:
        if len(ranks) < 2 or max(ranks) >= self.world_size:
            return OTHER
        places = [self._mesh.coordinates(rank) for rank in ranks]
        varied = {name for name in places[0] if len({place[name] for place in places}) > 1}
        if self.strategy.ep > 1 and operation == "all_to_all" and _within(varied, _OF_EXPERT[0][0]):
            return "ep"
        dense = varied & {"tp", "cp", "pp", "dp_shard", "dp_replicate"}
        found = next((axis for names, axis in _OF_DENSE if dense and dense <= names), None)
        return found or next((axis for names, axis in _OF_EXPERT if _within(varied, names)), OTHER)

    def _by_operation(self, operation: str) -> str:
        """Where only one axis of the plan runs such an operation."""
        strategy, asked = self.strategy, list[str]()
        if operation == "all_to_all":
            asked = ["ep"] * (strategy.ep > 1) + ["cp"] * (strategy.cp > 1 and strategy.cp_kind == "all_to_all")
        elif operation == "send_recv":
            asked = ["pp"] * (strategy.pp > 1) + ["cp"] * (strategy.cp > 1 and strategy.cp_kind == "ring")
        elif operation in {"all_reduce", "all_gather", "reduce_scatter"}:
            asked = ["tp"] * (strategy.tp > 1) + ["dp"] * (strategy.dp * strategy.cp > 1)
        return asked[0] if len(asked) == 1 else OTHER


def _within(varied: set[str], names: set[str]) -> bool:
    expert = varied & {"etp", "ep", "edp_shard", "edp_replicate"}
    return bool(expert) and expert <= names
