"""Trains a module with an operator-level plan: one optimizer step on the ranks of a mesh.

Every rank keeps, of each parameter, its part at ``placements`` (what the graph reads) and a master part at
``state_placements`` (what the optimizer steps on; fp32 where the module computes in fewer bits).  One step:

1. the graph of forward and backward runs (``graph_run``) -> loss, gradients, changed buffers;
2. each gradient goes to its parameter's state placements, that of an input to where the plan hands it out;
3. the optimizer steps on the master parts, element by element;
4. the new values go back to the placements that the graph reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from planner.backends.native.trainer.operator_sharding.graph_run import PlacedGraph
from planner.backends.native.trainer.operator_sharding.optimizer import build_optimizer
from planner.backends.native.trainer.operator_sharding.placements import as_placed, from_whole, placed, words_of
from planner.backends.native.trainer.operator_sharding.settings import RunSettings
from planner.backends.native.trainer.operator_sharding.traced_module import Retraced
from planner.errors import BackEndRefused
from planner.shard.sharding_plan import ParameterPlacement, Placements, ShardingPlan


@dataclass(slots=True)
class ShardedParameter:
    """One parameter on this rank: what the graph reads, and what the optimizer steps on."""

    row: ParameterPlacement
    value: DTensor
    master: nn.Parameter

    def take_gradient(self, gradient: DTensor) -> None:
        """Bring a gradient to where the master part is."""
        local = placed(gradient, self.row.state_placements).to_local()
        self.master.grad = local.to(self.master.dtype).contiguous()

    def publish(self) -> None:
        """Make the stepped master part what the graph reads next."""
        part = self.master.detach().to(self.value.dtype)
        at_state = as_placed(part, self.value.device_mesh, self.row.state_placements, self.value)
        self.value = placed(at_state, self.row.placements)


@dataclass(slots=True)
class ShardedStep:
    """A module, its plan and its optimizer on this rank's part of the mesh."""

    plan: ShardingPlan
    retraced: Retraced
    mesh: DeviceMesh
    settings: RunSettings
    parameters: dict[str, ShardedParameter] = field(init=False)
    buffers: dict[str, DTensor] = field(init=False)
    input_gradients: dict[str, DTensor] = field(init=False, default_factory=dict)
    """Of the last step, for those inputs whose gradient was traced."""
    optimizer: Optimizer = field(init=False)
    _graph: PlacedGraph = field(init=False)

    def __post_init__(self) -> None:
        operators = {row.name: row for row in self.plan.operators}
        constants = {row.name: row.placements for row in self.plan.parameters}
        self._graph = PlacedGraph(self.retraced.graph, operators, constants, self.mesh)
        tensors = {**dict(self.retraced.module.named_parameters()), **dict(self.retraced.module.named_buffers())}
        rows = {row.parameter: row for row in self.plan.parameters}
        device = self.mesh.device_type
        self.parameters = {
            name: _sharded(rows[name], tensors[name].detach().to(device), self.mesh)
            for name in self.retraced.parameters
        }
        self.buffers = {
            name: from_whole(tensors[name].detach().to(device), self.mesh, rows[name].placements)
            for name in self.retraced.buffers
        }
        masters = [each.master for each in self.parameters.values()]
        self.optimizer = build_optimizer(self.plan.optimizer, masters, self.settings)

    def run(self, inputs: Sequence[Tensor]) -> float:
        """One optimizer step on a whole batch, the same on every rank -> its loss.  Raises BackEndRefused."""
        results = self._results(inputs)
        for name, tensor in results.items():
            kind, _, what = name.partition(":")
            if kind == "parameter":
                self.parameters[what].take_gradient(tensor)
            elif kind == "buffer":
                self.buffers[what] = placed(tensor, words_of(self.buffers[what]))
            elif kind == "input":
                self.input_gradients[what] = placed(tensor, self._handed_out(f"gradient:{what}", tensor))
        loss = self._loss(results["loss"])
        self.optimizer.step()
        self.optimizer.zero_grad()
        for parameter in self.parameters.values():
            parameter.publish()
        return loss

    def _results(self, inputs: Sequence[Tensor]) -> dict[str, DTensor]:
        rows = self.plan.inputs
        if len(inputs) != len(rows):
            raise BackEndRefused(f"the module takes {len(rows)} inputs, and {len(inputs)} were given", where="--data")
        batch = [
            from_whole(tensor.to(self.mesh.device_type), self.mesh, row.placements)
            for tensor, row in zip(inputs, rows, strict=True)
        ]
        values = [each.value for each in self.parameters.values()]
        with torch.no_grad():
            found = self._graph.run([*values, *self.buffers.values(), *batch])
        return dict(zip(self.retraced.results, found, strict=True))

    def _loss(self, loss: DTensor) -> float:
        whole = placed(placed(loss, self._handed_out("loss", loss)), ("replicate",) * self.mesh.ndim)
        return float(whole.to_local())

    def _handed_out(self, name: str, tensor: DTensor) -> Placements:
        return next((row.placements for row in self.plan.outputs if row.name == name), words_of(tensor))


def _sharded(row: ParameterPlacement, whole: Tensor, mesh: DeviceMesh) -> ShardedParameter:
    if any(word.startswith("partial") for word in (*row.placements, *row.state_placements)):
        raise BackEndRefused(f"parameter {row.parameter} is planned as terms of a sum", hint="plan the module again")
    value = from_whole(whole, mesh, row.placements)
    state = from_whole(whole, mesh, row.state_placements).to_local()
    return ShardedParameter(row, value, nn.Parameter(state.to(torch.float32, copy=True)))
