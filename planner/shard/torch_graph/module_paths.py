"""The module of each operator of the joint graph: forward by hooks, backward by autograd's own numbers.

Autograd numbers its nodes as the forward pass makes them.  The number at every entry and exit of a module tells which
module made which node; in the backward pass a hook on each node looks it up again.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import traceback as fx_traceback

PATH, PHASE = "module_path", "phase"


class ModulePaths:
    """Marks the nodes that a tracer makes with module path and phase, under ``custom`` of their meta data."""

    def __init__(self) -> None:
        self._open: list[str] = [""]
        self._numbers: list[int] = [-1]
        self._paths: list[str] = [""]

    @contextmanager
    def recording(self, module: nn.Module) -> Iterator[None]:
        """While the module runs, know where it is."""
        handles = []
        for path, part in module.named_modules():
            handles.append(part.register_forward_pre_hook(self._entering(path)))
            handles.append(part.register_forward_hook(self._leaving, always_call=True))
        _mark("", "forward")
        try:
            with fx_traceback.preserve_node_meta():
                yield
        finally:
            for handle in handles:
                handle.remove()
            fx_traceback.current_meta.pop("custom", None)

    def follow_backward(self, loss: Tensor) -> None:
        """From now on the path is that of the autograd node that runs."""
        _mark("", "backward")
        seen, pending = set(), [loss.grad_fn]
        while pending:
            node = pending.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            node.register_prehook(self._running(self._path_of(node._sequence_nr())))
            pending.extend(following for following, _ in node.next_functions)

    def _path_of(self, number: int) -> str:
        return self._paths[bisect.bisect_right(self._numbers, number) - 1]

    def _entering(self, path: str) -> Callable[..., None]:
        def hook(module: nn.Module, arguments: Any) -> None:
            self._open.append(path)
            self._note()

        return hook

    def _leaving(self, module: nn.Module, arguments: Any, output: Any) -> None:
        self._open.pop()
        self._note()

    def _note(self) -> None:
        number = int(torch._C._autograd._get_sequence_nr())
        if self._numbers[-1] == number:
            self._paths[-1] = self._open[-1]
        else:
            self._numbers.append(number)
            self._paths.append(self._open[-1])
        _mark(self._open[-1], "forward")

    @staticmethod
    def _running(path: str) -> Callable[[Any], None]:
        def hook(gradients: Any) -> None:
            _mark(path, "backward")

        return hook


def _mark(path: str, phase: str) -> None:
    fx_traceback.current_meta["custom"] = {PATH: path, PHASE: phase}
