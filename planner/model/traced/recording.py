"""Records what a module runs on the meta device: operations with shapes, parameters, and what autograd keeps.

Attention is one operation: transformers' own registry of attention functions (``AttentionInterface``) and
``scaled_dot_product_attention`` of torch are given a function that only says its shapes.  A tensor is known by the
memory that it shares with its views.  A part of a weight that is picked by an index (the experts of each token) counts
as the weight itself.  The module is in fp32, so that casts between 16 and 32 bit do not occur; elements are counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from planner.model.traced.records import Record, RecordKind, Trace

_PRODUCTS = {"mm": (0, 1), "addmm": (1, 2), "bmm": (0, 1), "baddbmm": (1, 2), "addbmm": (1, 2)}
"""Places of the two factors among the arguments."""
_PICKS = frozenset({"index", "index_select", "gather", "embedding"})


class Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """The operations of the passes that run under it."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.records: list[Record] = []
        self.parameters: dict[int, int] = {}
        for parameter in module.parameters():
            self.parameters[_memory(parameter)] = parameter.numel()
        self._same: dict[int, int] = {}
        self._alive: list[Any] = []  # memory that is freed would give its number to another tensor
        self._stack: list[tuple[str, bool]] = [("", False)]
        self._waiting: dict[int, int] = {}
        self._saved: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation of torch and note it, unless it only makes a view.

        Tests of masks and positions (``all``, ``any``) are answered for one unpadded sequence; no other number is.
        """
        if func.overloadpacket.__name__ == "_local_scalar_dense" and args[0].dtype == torch.bool:
            number = self._tensor(args[0])
            test = next((each.operation for each in reversed(self.records) if each.output == number), "")
            if test in ("all", "any"):
                return test == "all"
        out = func(*args, **(kwargs or {}))
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        for made in (each for each in tree_leaves(out) if isinstance(each, torch.Tensor)):
            self._alive.append(made.untyped_storage())
            inplace = func._schema.is_mutable
            if not inplace and _memory(made) in {_memory(each) for each in given}:
                continue
            self._note(func, args, given, made)
        return out

    def _note(self, func: Any, args: Any, given: list[torch.Tensor], made: torch.Tensor) -> None:
        name = func.overloadpacket.__name__.removesuffix("_")
        weights = [each for each in given if self._tensor(each) in self.parameters]
        if name in _PICKS and weights and weights[0].dim() > 2:
            self._same[_memory(made)] = self._tensor(weights[0])
            return
        kind: RecordKind = "lookup" if name in _PICKS and weights else "pointwise"
        record = self._record(kind, name, given, made)
        if name in _PRODUCTS:
            left, right = (args[place] for place in _PRODUCTS[name])
            record.kind = "matmul"
            self._product(record, left, right)
        elif "convolution" in name:
            record.kind = "convolution"
            weight = args[1]
            record.flops = 2 * made.numel() * math.prod(weight.shape[1:])
        self._add(record)

    def _record(self, kind: RecordKind, name: str, given: list[torch.Tensor], made: torch.Tensor) -> Record:
        path, norm = self._stack[-1]
        record = Record(kind, name, path, path if norm else "", output=self._tensor(made), written=made.numel())
        for each in given:
            number = self._tensor(each)
            if number in self.parameters:
                if number not in record.parameters:
                    record.parameters.append(number)
            elif each.dim() > 0:
                record.inputs[number] = record.inputs.get(number, 0) + min(each.numel(), _held(each))
        return record

    def _product(self, record: Record, left: torch.Tensor, right: torch.Tensor) -> None:
        """Rows, depth and columns; a weight on the left (one column for each row of a batch) is turned round."""
        batch = left.shape[0] if left.dim() == 3 else 1
        rows, depth, columns = left.shape[-2], left.shape[-1], right.shape[-1]
        picked = next((each for each in (left, right) if _memory(each) in self._same), None)
        if self._tensor(left) in self.parameters and self._tensor(right) not in self.parameters:
            rows, columns = columns, rows
        record.rows, record.depth, record.columns = batch * rows, depth, columns
        if picked is not None:
            number = self._tensor(picked)
            record.experts = max(self.parameters[number] // max(depth * columns, 1), 1)

    def _add(self, record: Record) -> None:
        for number in [each for each in self._waiting if each in record.inputs]:
            record.saves[number] = self._waiting.pop(number)
        self.records.append(record)

    def keep(self, tensor: torch.Tensor) -> torch.Tensor:
        """What autograd calls with every tensor that it keeps: inputs before the operation runs, outputs after it.

        An output that is kept is given to the operation that reads it next.
        """
        number = self._tensor(tensor)
        if number in self.parameters or number in self._saved or not tensor.is_floating_point():
            return tensor
        self._alive.append(tensor.untyped_storage())
        self._saved.add(number)
        self._waiting[number] = _held(tensor)
        return tensor

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, window: int | None, *, causal: bool) -> Any:
        """The output of attention, empty, with what a fused kernel keeps."""
        return _Core.apply(q, k, v, self, (window, causal))  # type: ignore[no-untyped-call]

    def core(self, tensors: tuple[torch.Tensor, ...], out: torch.Tensor, window: int | None, *, causal: bool) -> None:
        """Note one attention over queries, keys and values."""
        q, k, v = tensors
        self.records.pop()  # the empty output
        record = self._record("attention", "attention", [q, k, v], out)
        record.heads, record.window, record.causal = (q.shape[1], k.shape[1], q.shape[3], v.shape[3]), window, causal
        record.rows, record.columns = q.shape[0] * q.shape[2], k.shape[2]
        for each in (q, k, v):
            number = self._tensor(each)
            if number not in self._saved and number not in self.parameters:
                self._saved.add(number)
                record.saves[number] = _held(each)
        self.records.append(record)

    def enter(self, path: str, norm: bool) -> None:
        """A module starts."""
        self._stack.append((path, norm) if not self._stack[-1][1] else self._stack[-1])

    def leave(self) -> None:
        """The last one ends."""
        self._stack.pop()

    def close(self) -> None:
        """Give what is still waiting to the operation that made it."""
        for number, size in self._waiting.items():
            maker = next((each for each in reversed(self.records) if number in (each.output, *each.inputs)), None)
            if maker is not None:
                maker.saves[number] = size
        self._waiting.clear()

    def _tensor(self, tensor: torch.Tensor) -> int:
        return self._same.get(_memory(tensor), _memory(tensor))


class _Core(torch.autograd.Function):
    """Attention without arithmetic: the output's shape, and an edge for the backward pass."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, recorder: Recorder, mask: tuple[int | None, bool]) -> Any:
        """The empty output; ``mask``: a window and whether later tokens are hidden."""
        out = q.new_empty(*q.shape[:-1], v.shape[-1])
        recorder.core((q, k, v), out, mask[0], causal=mask[1])
        return out


def _memory(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _held(tensor: torch.Tensor) -> int:
    """Elements of the memory that a tensor keeps alive."""
    return tensor.untyped_storage().nbytes() // max(tensor.element_size(), 1)


def record(module: torch.nn.Module, length: int, run: Callable[[int], Any], attends: dict[str, Any]) -> Trace:
    """One forward pass of ``run`` over ``length`` tokens; ``attends`` holds the recorder while it runs."""
    recorder = Recorder(module)
    attends["recorder"] = recorder
    try:
        with (
            ExitStack() as stack,
            torch.autograd.graph.saved_tensors_hooks(recorder.keep, lambda kept: kept),
            recorder,
        ):
            stack.enter_context(_followed(module, recorder))
            run(length)
        recorder.close()
    finally:
        attends.pop("recorder", None)
    return Trace(length, recorder.records, recorder.parameters)


@contextmanager
def _followed(module: torch.nn.Module, recorder: Recorder) -> Iterator[None]:
    """While it lasts, the recorder knows which module runs."""
    handles = []
    for path, each in module.named_modules():
        norm = "norm" in type(each).__name__.lower() and not list(each.children())

        def before(_: Any, __: Any, path: str = path, norm: bool = norm) -> None:
            recorder.enter(path, norm)

        def after(_: Any, __: Any, ___: Any) -> None:
            recorder.leave()

        handles += [each.register_forward_pre_hook(before), each.register_forward_hook(after)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
