"""The call tree of the host: operators and annotations of each thread, nested by their times.

An operator encloses another of the same thread whose time lies inside its own.  Phases: what runs below
``autograd::engine::evaluate_function`` is backward, except operators that record a new forward (they carry a
``Sequence number`` of their own, or run in a checkpoint's node): those are recomputation, a forward.  What runs below
``Optimizer.step`` is the optimizer.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

from profiles.importers.kineto.events import Arguments, Event

EVALUATE = "autograd::engine::evaluate_function"
_OPTIMIZER = re.compile(r"^Optimizer\.step#(.{1,80})\.step$")
_NODE = re.compile(r"(?:Backward\d*|AccumulateGrad)$")
_CHECKPOINT = re.compile(r"Checkpoint\w*Backward|CheckpointFunction")


Thread = tuple[int | str, int | str]


@dataclass(slots=True)
class Call:
    """One operator or annotation on the host; times in ns.  ``parent`` is -1 at the top."""

    name: str
    start_ns: int
    end_ns: int
    arguments: Arguments | None
    row: int
    is_annotation: bool
    thread: Thread
    parent: int = -1
    num_kernels: int = 0
    kernels_ns: int = 0
    math: str = ""


@dataclass(slots=True)
class Context:
    """In what a call runs: the autograd node around it, and whether the node's own forward is being repeated."""

    node: int = -1
    optimizer: int = -1
    recompute: bool = False

    @property
    def backward(self) -> bool:
        """Whether it is part of the backward pass proper."""
        return self.node >= 0 and not self.recompute


@dataclass(slots=True)
class CallTree:
    """All host calls of one rank."""

    calls: list[Call] = field(default_factory=list)
    by_link: dict[object, int] = field(default_factory=dict)
    _threads: dict[Thread, list[int]] = field(default_factory=dict)
    _starts: dict[Thread, list[int]] = field(default_factory=dict)

    def add(self, event: Event, start_ns: int, end_ns: int, row: int, is_annotation: bool) -> None:
        """Take one host event."""
        index = len(self.calls)
        thread = thread_of(event)
        name = event.name if isinstance(event.name, str) else ""
        self.calls.append(Call(name, start_ns, end_ns, event.args, row, is_annotation, thread))
        self._threads.setdefault(thread, []).append(index)
        link = event.args.link if event.args is not None else None
        if isinstance(link, (int, str)) and link != 0:
            self.by_link.setdefault(link, index)

    def nest(self) -> None:
        """Find every parent; call once after the last ``add``."""
        calls = self.calls
        for thread, members in self._threads.items():
            members.sort(key=lambda index: (calls[index].start_ns, -calls[index].end_ns, index))
            open_calls: list[int] = []
            for index in members:
                call = calls[index]
                while open_calls and calls[open_calls[-1]].end_ns <= call.start_ns:
                    open_calls.pop()
                call.parent = open_calls[-1] if open_calls else -1
                open_calls.append(index)
            self._starts[thread] = [calls[index].start_ns for index in members]

    def enclosing(self, thread: Thread, time_ns: int) -> int:
        """The innermost call of a thread that runs at a time; -1 if none."""
        starts = self._starts.get(thread)
        if not starts:
            return -1
        position = bisect_right(starts, time_ns)
        index = self._threads[thread][position - 1] if position else -1
        while index >= 0 and self.calls[index].end_ns < time_ns:
            index = self.calls[index].parent
        return index

    def ancestors(self, index: int) -> list[int]:
        """The call itself and all around it, innermost first."""
        found = []
        while index >= 0:
            found.append(index)
            index = self.calls[index].parent
        return found

    def context(self, chain: list[int]) -> Context:
        """The context of the innermost call of a chain of ancestors."""
        result = Context()
        forward_inside = False
        for index in chain:
            call = self.calls[index]
            if is_node(call):
                if result.node < 0:
                    result.node = index
                if call.name.startswith(EVALUATE):
                    result.node = index
                    result.recompute = forward_inside or bool(_CHECKPOINT.search(call.name))
                    break
                continue
            if call.is_annotation:
                if _OPTIMIZER.match(call.name):
                    result.optimizer = index
            elif call.arguments is not None and _is_sequence(call.arguments.sequence_number):
                forward_inside = True
        return result

    def node_name(self, index: int) -> str:
        """Name of an autograd node: ``AddmmBackward0``."""
        return self.calls[index].name.removeprefix(EVALUATE + ":").strip() if index >= 0 else ""


def thread_of(event: Event) -> Thread:
    """Process and thread of an event, as something that can be compared."""
    pid, tid = event.pid, event.tid
    return (pid if isinstance(pid, (int, str)) else str(pid), tid if isinstance(tid, (int, str)) else str(tid))


def is_node(call: Call) -> bool:
    """Whether a call is the evaluation of an autograd node."""
    return not call.is_annotation and (call.name.startswith(EVALUATE) or bool(_NODE.search(call.name)))


def optimizer_name(name: str) -> str | None:
    """``AdamW`` of ``Optimizer.step#AdamW.step``; None for other annotations."""
    found = _OPTIMIZER.match(name)
    return found.group(1) if found else None


def _is_sequence(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
