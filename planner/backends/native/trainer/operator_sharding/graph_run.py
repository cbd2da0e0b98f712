"""Runs a traced training step with a placement for every operator.

The graph holds forward and backward, so that nothing is differentiated here: its operators run one after the other, in
its order (``operator_run``), and a value is dropped after its last use.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, fx
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor

from planner.backends.native.trainer.operator_sharding.operator_run import refused, run_operator
from planner.backends.native.trainer.operator_sharding.placements import from_whole
from planner.errors import BackEndRefused
from planner.shard.sharding_plan import OperatorPlacement, Placements


@dataclass(slots=True)
class PlacedGraph:
    """A graph, the placements of its operators by node name, and the mesh that they speak of."""

    traced: fx.GraphModule
    operators: Mapping[str, OperatorPlacement]
    constants: Mapping[str, Placements]
    """Of the tensors that the graph itself carries, by node name."""
    mesh: DeviceMesh
    _dead_after: dict[fx.Node, list[fx.Node]] = field(init=False)

    def __post_init__(self) -> None:
        last_user = {value: node for node in self.traced.graph.nodes for value in node.all_input_nodes}
        self._dead_after = {}
        for value, user in last_user.items():
            self._dead_after.setdefault(user, []).append(value)

    def run(self, inputs: Sequence[DTensor]) -> list[Any]:
        """The graph's outputs for inputs that are placed as the plan places them, in the order of the placeholders.

        Raises BackEndRefused where an operator cannot run at the placements of the plan.
        """
        values: dict[fx.Node, Any] = {}
        given = iter(inputs)
        for node in self.traced.graph.nodes:
            if node.op == "output":
                return [values[each] if isinstance(each, fx.Node) else each for each in _leaves(node.args[0])]
            values[node] = next(given) if node.op == "placeholder" else self._value(node, values)
            for dead in self._dead_after.get(node, ()):
                del values[dead]
        raise BackEndRefused("the traced graph has no output", hint="trace the module again")

    def _value(self, node: fx.Node, values: Mapping[fx.Node, Any]) -> Any:
        if node.op == "get_attr":
            constant = _attribute(self.traced, str(node.target)).to(self.mesh.device_type)
            return from_whole(constant, self.mesh, self.constants[node.name])
        if node.target is operator.getitem:
            sequence, index = node.args
            return values[sequence][index]  # type: ignore[index]
        plan = self.operators.get(node.name)
        if plan is None:
            raise refused(node, None, "the plan does not know it")
        return run_operator(node, plan, values, self.mesh)


def _leaves(value: Any) -> Iterator[Any]:
    """Of nested lists and tuples, in order."""
    if isinstance(value, tuple | list):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


def _attribute(module: fx.GraphModule, path: str) -> Tensor:
    found: Any = module
    for name in path.split("."):
        found = getattr(found, name)
    return found  # type: ignore[no-any-return]
