"""The operators that repeat: copies of one block (the layers of a transformer) share one choice.

Blocks are the numbered children of a module (``layers.0``, ``layers.1``, ..).  Two blocks are copies if they run the
same operators on the same shapes in the same order, wired alike inside; what they read from outside may differ, as the
first layer reads the embedding.  Blocks that differ (a first layer without a gradient sum) stay by themselves.

The last copy stands for all.  Costs of the others are added to it, and so are the edges between neighbours: the same
choice on both sides of every boundary.  Memory is counted during the last copy's own steps and those outside all
copies: there every other copy's saved tensors are alive, so any moment inside an earlier copy needs no more than the
same moment of the last one (as long as nothing outside the copies lives only in between; the memory of an answer is
simulated unfolded in any case).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from planner.shard.operator_graph import OperatorGraph, OperatorNode

NUMBERED = re.compile(r"^(?P<parent>.*?)(?:^|\.)(?P<number>\d+)(?:\.|$)")


@dataclass(frozen=True)
class FoldedGraph:
    """``representative`` of every node; ``groups`` of the paths of copies; ``kept``: steps whose memory counts."""

    representative: tuple[int, ...]
    groups: tuple[tuple[str, ...], ...]
    kept: tuple[bool, ...]

    def copies(self, node: int) -> list[int]:
        """All nodes that ``node`` stands for, itself included."""
        return self._members[node]

    @property
    def _members(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for index, chosen in enumerate(self.representative):
            found[chosen].append(index)
        return found


def unfolded(graph: OperatorGraph) -> FoldedGraph:
    """Every node by itself."""
    return FoldedGraph(tuple(range(len(graph.nodes))), (), (True,) * len(graph.nodes))


def fold_repeated_blocks(graph: OperatorGraph) -> FoldedGraph:
    """Find copies of numbered blocks."""
    representative = list(range(len(graph.nodes)))
    kept = [True] * len(graph.nodes)
    groups: list[tuple[str, ...]] = []
    for blocks in _alike(graph):
        *others, last = sorted(blocks, key=_natural)
        groups.append((*others, last))
        for path in others:
            for copy, chosen in zip(blocks[path], blocks[last], strict=True):
                representative[copy] = chosen
                kept[copy] = False
    return FoldedGraph(tuple(representative), tuple(groups), tuple(kept))


def _alike(graph: OperatorGraph) -> Iterable[dict[str, list[int]]]:
    """Blocks with equal fingerprints, by path: at least two each."""
    blocks: dict[str, list[int]] = defaultdict(list)
    for index, node in enumerate(graph.nodes):
        path = _block_of(graph, index, node)
        if path is not None:
            blocks[path].append(index)
    alike: dict[tuple[str, tuple[object, ...]], dict[str, list[int]]] = defaultdict(dict)
    for path, members in blocks.items():
        alike[path.rpartition(".")[0], _fingerprint(graph, path, members)][path] = members
    return [found for found in alike.values() if len(found) > 1]


def _block_of(graph: OperatorGraph, index: int, node: OperatorNode) -> str | None:
    """The outermost numbered module that a node belongs to; placeholders by the name of what they hold."""
    path = node.module_path if node.kind == "operator" else graph.names[index]
    match = NUMBERED.match(path)
    if match is None or node.kind == "input":
        return None
    return path[: match.end("number")]


def _fingerprint(graph: OperatorGraph, path: str, members: list[int]) -> tuple[object, ...]:
    place = {index: order for order, index in enumerate(members)}
    rows: list[object] = []
    for index in members:
        node = graph.nodes[index]
        own = node.module_path if node.kind == "operator" else graph.names[index]
        reads = tuple((place.get(read.producer, -1), read.output) for read in node.reads)
        rows.append((node.kind, node.phase, node.signature, own.removeprefix(path), reads))
    return tuple(rows)


def _natural(path: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in path.split(".")]
