"""Which operations belong to which layer: the repeated modules of the largest list, and what stands around them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from planner.model.trace import UNMET
from planner.model.traced.fitting import operators_of
from planner.model.traced.grouping import Group, grouped
from planner.model.traced.records import Trace


def parts_of(traces: Sequence[Trace], lists: Mapping[str, int], owners: Mapping[str, int], head: str) -> dict[str, Any]:
    """Layer kinds, runs and ends for a ``ModelSpec``.

    ``lists``: parameters in each list of modules, by its path; ``owners``: name of each parameter -> its tensor;
    ``head``: path of the matmul over the vocabulary.  Raises ValueError, saying what cannot be described.
    """
    layers = _layers(traces[0], lists)
    lengths = [trace.length for trace in traces]
    split = [_segments(trace, layers) for trace in traces]
    if len({tuple(places) for _, _, places in split}) > 1:
        raise ValueError("other layers run at another sequence length")
    places = split[0][2]
    tables = [_by_segment(grouped(trace, one[0], one[1])) for trace, one in zip(traces, split, strict=True)]
    count = len(places)
    unmet = _parameters(traces[0], tables[0], owners, layers, places)
    segments = [operators_of([table[number] for table in tables], lengths) for number in range(count + 2)]
    for number, size in unmet.items():
        segments[number].append({"name": UNMET, "op_class": "embedding", "parameters": size})
    kinds: list[Any] = []
    sequence = []
    for operators in segments[1:-1]:
        if operators not in kinds:
            kinds.append(operators)
        sequence.append(kinds.index(operators))
    top = _head(segments[-1], head)
    return {
        "hidden_size": _hidden(traces[0], split[0][0]),
        "vocab_size": top["out_features"],
        "tie_embeddings": top["parameters"] < top["in_features"] * top["out_features"],
        "kinds": kinds,
        "runs": [{"kind": kind, "count": len(list(run))} for kind, run in groupby(sequence)],
        "traced": {"entry": segments[0], "exit": segments[-1], "layers": layers},
    }


def _layers(trace: Trace, lists: Mapping[str, int]) -> str:
    """Path of the list of modules that holds the most parameters and runs."""
    ran = {
        path: size for path, size in lists.items() if any(each.path.startswith(f"{path}.") for each in trace.records)
    }
    outer = {path: size for path, size in ran.items() if not any(path.startswith(f"{other}.") for other in ran)}
    if not outer:
        raise ValueError("no list of layers runs")
    return max(outer, key=lambda path: outer[path])


def _segments(trace: Trace, layers: str) -> tuple[list[int], list[str], list[int]]:
    """Of each record its segment and its path within, and the index in the list of each layer that runs, in order.

    What runs between two layers belongs to the later one.
    """
    inside = [_index(each.path, layers) for each in trace.records]
    last = max(place for place, index in enumerate(inside) if index is not None)
    segments, places = [0] * len(inside), list[int]()
    for place in range(last + 1):
        index = inside[place]
        if index is not None and (not places or index != places[-1]):
            places.append(index)
            back = place  # what ran since the layer before
            while places[1:] and back > 0 and inside[back - 1] is None:
                back -= 1
                segments[back] = len(places)
        segments[place] = len(places)
    segments[last + 1 :] = [len(places) + 1] * (len(inside) - last - 1)
    names = []
    for each, index in zip(trace.records, inside, strict=True):
        path = each.path if index is None else each.path.removeprefix(f"{layers}.{index}").lstrip(".")
        said = each.operation if each.kind in ("pointwise", "attention") else ""
        names.append(".".join(filter(None, (path, said))) or each.operation)
    return segments, names, places


def _index(path: str, layers: str) -> int | None:
    if not path.startswith(f"{layers}."):
        return None
    return int(path.removeprefix(f"{layers}.").partition(".")[0])


def _by_segment(groups: Sequence[Group]) -> dict[int, list[Group]]:
    found: dict[int, list[Group]] = defaultdict(list)
    for each in groups:
        found[each.segment].append(each)
    return found


def _parameters(
    trace: Trace, groups: Mapping[int, list[Group]], owners: Mapping[str, int], layers: str, places: Sequence[int]
) -> dict[int, int]:
    """Say of every group which learned scalars it meets first; gives those that no operation meets, by segment."""
    met: set[int] = set()
    for number in sorted(groups):
        for each in groups[number]:
            new = set(each.parameters) - met
            met |= new
            each.learned = sum(trace.parameter_sizes[tensor] for tensor in new)
    unmet: dict[int, int] = defaultdict(int)
    for name, tensor in owners.items():
        if tensor not in met:
            met.add(tensor)
            index = _index(name, layers)
            number = places.index(index) + 1 if index in places else 0
            unmet[number] += trace.parameter_sizes[tensor]
    return dict(unmet)


def _head(exit_operators: Sequence[dict[str, Any]], head: str) -> dict[str, Any]:
    products = [each for each in exit_operators if each["op_class"] == "matmul"]
    named = [each for each in products if each["name"] == head]
    if not products:
        raise ValueError("no product gives logits behind its layers")
    return (named or products)[-1]


def _hidden(trace: Trace, segments: Sequence[int]) -> int:
    """Features that pass from one layer to the next: what the last layer that runs made and the exit reads."""
    last = max(segments)
    made = {
        each.output: each.written for each, number in zip(trace.records, segments, strict=True) if number == last - 1
    }
    read = (
        tensor for each, number in zip(trace.records, segments, strict=True) if number == last for tensor in each.inputs
    )
    widths = [made[tensor] // trace.length for tensor in read if tensor in made]
    if not widths:
        raise ValueError("nothing passes from its layers to its head")
    return max(widths)
