"""A dispatch mode that sees every collective that a piece of code runs, or raises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

NAMESPACES = ("c10d", "_c10d_functional", "_c10d_functional_autograd")
SILENT = {"wait_tensor", "_wrap_tensor_autograd", "recv_", "barrier"}
"""Ops that send nothing: waits, and the receiving side of what another rank records."""
BIG_SIDE: Mapping[str, tuple[str, int]] = {
    "allreduce_": ("all_reduce", 0),
    "all_reduce": ("all_reduce", 0),
    "all_reduce_": ("all_reduce", 0),
    "_allgather_base_": ("all_gather", 0),
    "all_gather_into_tensor": ("all_gather", -1),
    "_reduce_scatter_base_": ("reduce_scatter", 1),
    "reduce_scatter_tensor": ("reduce_scatter", 0),
    "alltoall_base_": ("all_to_all", 1),
    "all_to_all_single": ("all_to_all", 0),
    "send": ("send_recv", 0),
}
"""Name of the operation, and the argument that holds the payload (-1: the result), of the schemas of torch 2.13."""


@dataclass(frozen=True, slots=True)
class Call:
    """One collective of one rank."""

    operation: str
    group: str
    ranks: tuple[int, ...]
    payload_bytes: int
    dtype: str


class RecordedCollectives(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Appends to ``calls`` whatever goes through c10d while it is active; an unknown collective raises."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: list[Call] = []

    def __torch_dispatch__(
        self, func: Any, types: Iterable[type], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Run the operator, and note it where it is a collective."""
        result = func(*args, **(kwargs or {}))
        if func.namespace in NAMESPACES:
            self._note(func._opname, args, kwargs or {}, result)
        return result

    def _note(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        if name in SILENT:
            return
        if name not in BIG_SIDE:
            raise NotImplementedError(f"collective {name} is not known to the recorder")
        operation, position = BIG_SIDE[name]
        payload = _tensors(result if position < 0 else args[position])
        group = _group((*args, *kwargs.values()))
        self.calls.append(
            Call(
                operation,
                group.group_name,
                tuple(dist.get_process_group_ranks(group)),
                sum(tensor.numel() * tensor.element_size() for tensor in payload),
                str(payload[0].dtype).removeprefix("torch."),
            )
        )


def _tensors(value: Any) -> list[Tensor]:
    found = [value] if isinstance(value, Tensor) else [each for each in value if isinstance(each, Tensor)]
    if not found:
        raise TypeError(f"no tensor in {value}")
    return found


def _group(values: Iterable[Any]) -> dist.ProcessGroup:
    for value in values:
        if isinstance(value, torch.ScriptObject):
            try:
                return dist.ProcessGroup.unbox(value)
            except (RuntimeError, TypeError):
                continue
        if isinstance(value, str) and value not in ("sum", "avg", "max", "min"):
            return torch._C._distributed_c10d._resolve_process_group(value)  # type: ignore[arg-type]
    raise TypeError("a collective without a process group")
