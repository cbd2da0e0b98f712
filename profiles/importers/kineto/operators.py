"""Operator times on the device: kernels summed by the operator call that launched them.

A kernel belongs to the operator with its ``External id``, else to the one around the runtime call with its
correlation id.  Of nested operators the outermost known one takes the time (``scaled_dot_product_attention`` includes
the transposes inside it), below the autograd node.  Equal calls become one observation: same operator, phase, dtype,
sizes and detail; its statistic is the median over calls.  Kernels that no known operator launched are observations of
class ``kernel`` under their own names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from profiles.importers.kineto.call_tree import Call, CallTree, Context, is_node, optimizer_name
from profiles.importers.kineto.gradients import GroupedGradients, MatmulGradients
from profiles.importing.duration_statistics import Durations
from profiles.importing.torch_operators import OperatorRule, moves_no_data, operator_rule, point_wise
from profiles.importing.torch_shapes import CallShape, call_shape, free_shape, tensor_list_elements
from profiles.observations.records import Phase, Scalar

_MAX_NAME = 300


@dataclass(frozen=True, slots=True)
class OperatorKey:
    """What makes two calls the same operator."""

    operator: str
    name: str
    phase: Phase
    dtype: str = ""
    shape: tuple[tuple[str, int], ...] = ()
    causal: bool | None = None
    detail: tuple[tuple[str, Scalar], ...] = ()


@dataclass(slots=True)
class OperatorSamples:
    """Durations in ns by operator, with the row of the first one."""

    durations: dict[OperatorKey, Durations] = field(default_factory=dict)
    rows: dict[OperatorKey, int] = field(default_factory=dict)

    def add(self, key: OperatorKey, duration_ns: int, row: int) -> None:
        """Take one call."""
        found = self.durations.get(key)
        if found is None:
            found = self.durations[key] = Durations()
            self.rows[key] = row
        found.add(duration_ns)

    def merge(self, other: OperatorSamples) -> None:
        """Take in all calls of another collection."""
        for key, durations in other.durations.items():
            self.durations.setdefault(key, Durations()).extend(durations)
            self.rows.setdefault(key, other.rows[key])


@dataclass(slots=True)
class _Owner:
    """To whom kernels of one launching call are counted: ``target`` is -1 for kernels on their own."""

    target: int
    rule: OperatorRule | None
    context: Context
    called_by: str = ""


class OperatorTimes:
    """Collects the kernels of one rank and turns them into samples."""

    def __init__(self, tree: CallTree, samples: OperatorSamples) -> None:
        self._tree = tree
        self._samples = samples
        self._owners: dict[int, _Owner] = {}
        self._targets: dict[int, _Owner] = {}
        self._shapes: dict[tuple[Any, ...], CallShape] = {}
        self._gradients = MatmulGradients()
        self._fused_elements: dict[int, int] = {}

    def add_kernel(self, name: str, launcher: int, duration_ns: int, row: int) -> None:
        """Count one kernel that the call ``launcher`` (-1 = unknown) started."""
        owner = self._owner(launcher) if launcher >= 0 else None
        if owner is None or owner.target < 0:
            detail: tuple[tuple[str, Scalar], ...] = ()
            phase: Phase = "unknown"
            if owner is not None:
                phase = _plain_phase(owner.context, recognised=False)
                detail = (("called_by", owner.called_by),) if owner.called_by else ()
            self._samples.add(OperatorKey("kernel", name[:_MAX_NAME], phase, detail=detail), duration_ns, row)
            return
        call = self._tree.calls[owner.target]
        call.num_kernels += 1
        call.kernels_ns += duration_ns
        if not call.math and "tf32" in name:
            call.math = "tf32"
        self._targets.setdefault(owner.target, owner)

    def add_host_calls(self) -> None:
        """Count the calls themselves: for traces of runs on the CPU."""
        calls = self._tree.calls
        inner = self._calls_around_operators()
        for index, call in enumerate(calls):
            if call.end_ns <= call.start_ns or (call.is_annotation and optimizer_name(call.name) is None):
                continue
            owner = self._owner(index)
            if owner.target != index or index in inner:
                continue
            if owner.rule is None and not call.is_annotation and (moves_no_data(call.name) or not self._is_top(index)):
                continue
            call.kernels_ns = call.end_ns - call.start_ns
            self._targets[index] = owner

    def _calls_around_operators(self) -> set[int]:
        """Calls whose time is already that of a known operator inside: ``aten::linear``, autograd nodes."""
        around: set[int] = set()
        for index, call in enumerate(self._tree.calls):
            if call.is_annotation or operator_rule(call.name) is None:
                continue
            for outer in self._tree.ancestors(index)[1:]:
                rule = operator_rule(self._tree.calls[outer].name)
                if rule is not None and (rule.leaf_only or is_node(self._tree.calls[outer])):
                    around.add(outer)
        return around

    def finish(self) -> None:
        """Turn the sums into samples; call once after the last kernel."""
        calls = self._tree.calls
        self._find_fused()
        grouped = GroupedGradients()
        shapes = {index: self._shape(index, owner) for index, owner in self._targets.items()}
        for index, owner in self._targets.items():
            if owner.rule is not None and owner.rule.operator == "matmul":
                name = self._tree.node_name(owner.context.node) if owner.context.backward else ""
                self._gradients.add(index, calls[index], shapes[index], self._node(owner.context), name)
            elif shapes[index].grouped_by:
                grouped.add(index, calls[index], shapes[index], self._node(owner.context))
        phases = self._gradients.phases()
        for index, (phase, shape) in grouped.found().items():
            phases[index], shapes[index] = phase, shape
        for index, owner in self._targets.items():
            call = calls[index]
            if call.kernels_ns <= 0:
                continue
            phase = phases.get(index) or _plain_phase(owner.context, owner.rule is not None)
            self._samples.add(self._key(call, owner, shapes[index], phase), call.kernels_ns, call.row)

    def _node(self, context: Context) -> tuple[int, Call] | None:
        return (context.node, self._tree.calls[context.node]) if context.backward else None

    def _key(self, call: Call, owner: _Owner, shape: CallShape, phase: Phase) -> OperatorKey:
        detail = dict(shape.detail)
        if call.math:
            detail["math"] = call.math
        if owner.context.recompute:
            detail["recompute"] = True
        optimizer = optimizer_name(call.name) if call.is_annotation else None
        if optimizer is not None:
            operator, name, phase = "optimizer", optimizer, "step"
        elif owner.rule is not None:
            operator, name = owner.rule.operator, call.name
            operator = "decode_attention" if shape.decode else operator
            phase = "step" if operator == "optimizer" else phase
            phase = "backward" if owner.rule.backward and phase in ("forward", "unknown") else phase
        else:
            operator, name = ("elementwise" if point_wise(call.name) else "other"), call.name
        return OperatorKey(
            operator, name[:_MAX_NAME], phase, shape.dtype, tuple(sorted(shape.shape.items())), shape.causal,
            tuple(sorted(detail.items())),
        )  # fmt: skip

    def _owner(self, launcher: int) -> _Owner:
        found = self._owners.get(launcher)
        if found is None:
            found = self._owners[launcher] = self._find_owner(launcher)
        return found

    def _find_owner(self, launcher: int) -> _Owner:
        tree = self._tree
        chain = tree.ancestors(launcher)
        context = tree.context(chain)
        if context.optimizer >= 0:
            return _Owner(context.optimizer, None, context)
        while chain and tree.calls[chain[0]].is_annotation:
            chain = chain[1:]
        if not chain:
            return _Owner(-1, None, context)
        leaf = tree.calls[chain[0]]
        best, best_rule = -1, None
        for index in chain:
            call = tree.calls[index]
            rule = None if call.is_annotation else operator_rule(call.name)
            if rule is not None and (not rule.leaf_only or index == chain[0]):
                if is_node(call) and best >= 0:
                    break
                best, best_rule = index, rule
            if is_node(call):
                break
        if best >= 0:
            return _Owner(best, best_rule, context)
        if "::" not in leaf.name or is_node(leaf):
            return _Owner(
                -1, None, context, leaf.name.removeprefix("autograd::engine::evaluate_function: ")[:_MAX_NAME]
            )
        return _Owner(chain[0], None, context)

    def _is_top(self, index: int) -> bool:
        """Whether no other operator runs around a call, annotations and autograd nodes aside."""
        chain = self._tree.ancestors(index)[1:]
        return all(self._tree.calls[each].is_annotation or is_node(self._tree.calls[each]) for each in chain)

    def _shape(self, index: int, owner: _Owner) -> CallShape:
        call = self._tree.calls[index]
        if call.is_annotation:
            return self._optimizer_shape(index)
        arguments = call.arguments
        if arguments is None:
            return CallShape()
        dims = bytes(arguments.dims) or bytes(arguments.dims_old)
        if not dims:
            return CallShape()
        key = (call.name, dims, bytes(arguments.types), bytes(arguments.concrete))
        found = self._shapes.get(key)
        if found is None:
            parsed = [_list_of(text) for text in key[1:]]
            rule = owner.rule
            found = free_shape(parsed[0], parsed[1]) if rule is None else call_shape(rule, *parsed)
            self._shapes[key] = found
        return found

    def _optimizer_shape(self, annotation: int) -> CallShape:
        """Parameters of a fused step, where its operator says them.  Other optimizers touch one list several times."""
        total = self._fused_elements.get(annotation)
        return CallShape({"num_elements": total}) if total else CallShape()

    def _find_fused(self) -> None:
        for index, call in enumerate(self._tree.calls):
            if call.is_annotation or not call.name.startswith("aten::_fused_") or call.arguments is None:
                continue
            optimizer = self._tree.context(self._tree.ancestors(index)).optimizer
            elements = tensor_list_elements(_list_of(bytes(call.arguments.dims)))
            if optimizer >= 0 and elements:
                self._fused_elements[optimizer] = self._fused_elements.get(optimizer, 0) + elements


def _plain_phase(context: Context, recognised: bool) -> Phase:
    if context.optimizer >= 0:
        return "step"
    if context.backward:
        return "backward"
    return "forward" if recognised or context.recompute else "unknown"


def _list_of(text: bytes) -> list[object]:
    """A JSON list; empty where it is none."""
    try:
        found = msgspec.json.decode(text) if text else []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    return found if isinstance(found, list) else []
