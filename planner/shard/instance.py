"""An instance of the sharding contest: the JSON of the ASPLOS 2025 contest, plain or gzipped.

``problem.nodes``: ``intervals`` [begin, end), ``costs`` and ``usages`` per node and option; ``problem.edges``:
``nodes`` [a, b] and ``costs`` row-major K_a x K_b; ``problem.usage_limit`` (null: none).  10^18 and more is forbidden.
Source: github.com/google/iopddl, IOPDDL.md.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np

from planner.errors import DocumentInvalid, NotFound
from planner.shard.integer_lists import integer_lists
from solver.arrays import Ints
from solver.selection.problem import SelectionProblem

LARGEST_BYTES = 1 << 30
"""Of the text, unpacked: an instance of 70,000 nodes has 0.15 GB."""

SHAPE_HINT = 'the format is {"problem": {"nodes": {intervals, costs, usages}, "edges": {nodes, costs}, "usage_limit"}}'
MOST = np.iinfo(np.int64).max


class _Nodes(msgspec.Struct):
    intervals: msgspec.Raw
    costs: msgspec.Raw
    usages: msgspec.Raw


class _Edges(msgspec.Struct):
    nodes: msgspec.Raw
    costs: msgspec.Raw


class _Problem(msgspec.Struct):
    nodes: _Nodes
    edges: _Edges
    usage_limit: int | None


class _Document(msgspec.Struct):
    problem: _Problem


def read_instance(path: Path) -> SelectionProblem:
    """The selection problem of a file.  Raises NotFound, or DocumentInvalid that names the node or edge."""
    text = _read(path)
    try:
        problem = msgspec.json.decode(text, type=_Document).problem
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        _refuse(path, "", f"not an instance: {error}", SHAPE_HINT)
    nodes, edges = problem.nodes, problem.edges
    intervals, interval_lengths = _lists(path, "/problem/nodes/intervals", nodes.intervals)
    costs, counts = _lists(path, "/problem/nodes/costs", nodes.costs)
    usages, usage_counts = _lists(path, "/problem/nodes/usages", nodes.usages)
    ends, end_lengths = _lists(path, "/problem/edges/nodes", edges.nodes)
    edge_costs, edge_cells = _lists(path, "/problem/edges/costs", edges.costs)
    _check_nodes(path, interval_lengths, intervals, counts, usage_counts, usages)
    pairs = _check_edges(path, end_lengths, ends, counts, edge_cells)
    if problem.usage_limit is not None and not 0 <= problem.usage_limit <= MOST:
        _refuse(path, "/problem/usage_limit", f"usage_limit is {problem.usage_limit}", "give 0 .. 2^63 - 1, or null")
    live = intervals.reshape(-1, 2)
    return SelectionProblem(
        option_counts=counts,
        node_costs=costs,
        usages=usages,
        live_from=np.ascontiguousarray(live[:, 0]),
        live_until=np.ascontiguousarray(live[:, 1]),
        edge_nodes=pairs,
        edge_costs=edge_costs,
        capacity=problem.usage_limit,
    )


def _read(path: Path) -> bytes:
    """The unpacked text."""
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            if packed:
                with gzip.GzipFile(fileobj=file) as unpacked:
                    text = unpacked.read(LARGEST_BYTES + 1)
            else:
                text = file.read(LARGEST_BYTES + 1)
    except FileNotFoundError:
        raise NotFound("no such file", where=str(path), hint="check the path") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        _refuse(path, "", f"the gzip file is damaged: {error}", "copy it again; gzip -t FILE checks it")
    except OSError as error:
        reason = error.strerror or str(error)
        _refuse(path, "", f"cannot read the file: {reason}", "check its permissions and its path")
    if len(text) > LARGEST_BYTES:
        _refuse(path, "", f"more than {LARGEST_BYTES >> 20} MiB of text", "split the instance, or fold repeated layers")
    return text


def _refuse(path: Path, pointer: str, what: str, hint: str) -> NoReturn:
    raise DocumentInvalid(what, where=f"{path}#{pointer}" if pointer else str(path), hint=hint)


def _lists(path: Path, pointer: str, raw: msgspec.Raw) -> tuple[Ints, Ints]:
    """Numbers and lengths of a list of lists of integers."""
    found = integer_lists(raw)
    if found is not None:
        return found
    try:
        lists = msgspec.json.decode(raw, type=list[list[int]])
    except msgspec.DecodeError as error:
        _refuse(path, pointer, str(error), "every entry is a list of whole numbers")
    for position, entries in enumerate(lists):
        for place, value in enumerate(entries):
            if not -MOST <= value <= MOST:
                _refuse(path, f"{pointer}/{position}/{place}", f"{value} does not fit in 64 bits", "give smaller units")
    lengths = np.array([len(entries) for entries in lists], np.int64)
    return np.array([value for entries in lists for value in entries], np.int64), lengths


def _first(bad: Any) -> int | None:
    return int(np.argmax(bad)) if bad.any() else None


def _check_nodes(
    path: Path,
    interval_lengths: Ints,
    intervals: Ints,
    counts: Ints,
    usage_counts: Ints,
    usages: Ints,
) -> None:
    """Everything about nodes that can be wrong, the first of it refused."""
    where = "/problem/nodes"
    for name, given in (("intervals", interval_lengths), ("usages", usage_counts)):
        if given.size != counts.size:
            what = f"{given.size} {name} for {counts.size} nodes (by costs)"
            _refuse(path, f"{where}/{name}", what, "give one entry a node")
    if (i := _first(interval_lengths != 2)) is not None:
        what = f"the interval of node {i} has {interval_lengths[i]} numbers"
        _refuse(path, f"{where}/intervals/{i}", what, "give [begin, end)")
    begin, end = intervals[0::2], intervals[1::2]
    if (i := _first((begin < 0) | (end < 0))) is not None:
        what = f"the interval [{begin[i]}, {end[i]}) of node {i} is negative"
        _refuse(path, f"{where}/intervals/{i}", what, "times count from 0")
    if (i := _first(begin > end)) is not None:
        what = f"the interval [{begin[i]}, {end[i]}) of node {i} ends before it begins"
        _refuse(path, f"{where}/intervals/{i}", what, "give begin <= end; begin = end uses no memory")
    if (i := _first(counts == 0)) is not None:
        _refuse(path, f"{where}/costs/{i}", f"node {i} has no options", "give at least one cost")
    if (i := _first(usage_counts != counts)) is not None:
        what = f"node {i} has {counts[i]} costs and {usage_counts[i]} usages"
        _refuse(path, f"{where}/usages/{i}", what, "give one usage an option")
    if (j := _first(usages < 0)) is not None:
        i = int(np.searchsorted(np.cumsum(counts), j, side="right"))
        what = f"node {i} has the negative usage {usages[j]}"
        _refuse(path, f"{where}/usages/{i}", what, "usages are 0 or more")


def _check_edges(path: Path, lengths: Ints, ends: Ints, counts: Ints, cells: Ints) -> Ints:
    """int64[E, 2] of nodes, after everything about edges that can be wrong."""
    where = "/problem/edges"
    if lengths.size != cells.size:
        what = f"{lengths.size} pairs of nodes and {cells.size} cost tables"
        _refuse(path, f"{where}/costs", what, "give one table an edge")
    if (e := _first(lengths != 2)) is not None:
        _refuse(path, f"{where}/nodes/{e}", f"edge {e} names {lengths[e]} nodes", "give two")
    pairs = ends.reshape(-1, 2)
    if (e := _first(np.any((pairs < 0) | (pairs >= counts.size), axis=1))) is not None:
        what = f"edge {e} joins {pairs[e, 0]} and {pairs[e, 1]}, but nodes are 0 .. {counts.size - 1}"
        _refuse(path, f"{where}/nodes/{e}", what, "name nodes that exist")
    if (e := _first(pairs[:, 0] == pairs[:, 1])) is not None:
        what = f"edge {e} joins node {pairs[e, 0]} to itself"
        _refuse(path, f"{where}/nodes/{e}", what, "add its diagonal to the node's costs")
    rows, columns = counts[pairs[:, 0]], counts[pairs[:, 1]]
    if (e := _first(cells != rows * columns)) is not None:
        what = (
            f"edge {e} between node {pairs[e, 0]} ({rows[e]} options) and node {pairs[e, 1]} ({columns[e]} options) "
            f"has {cells[e]} costs"
        )
        _refuse(path, f"{where}/costs/{e}", what, f"give {rows[e] * columns[e]}, row-major")
    return pairs
