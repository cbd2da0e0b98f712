"""The slowdown of compute and communication by each other: a matrix product beside each kind of collective.

    slowdown of the product    = its time while collectives are in flight / alone
    slowdown of the collective = its time while products run              / alone

Both are ``other`` operators (``matmul_under_all_reduce``, ``all_reduce_under_matmul``), so that no look-up of a plain
product or collective finds a disturbed one; the undisturbed time stands beside them.  Times are maxima over the ranks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from profiles.measure.collective_calls import OPERATIONS, CollectiveCall, num_elements, prepare_collective
from profiles.measure.collective_plan import CollectivePlan
from profiles.measure.device import import_torch
from profiles.measure.group_shapes import GroupShape
from profiles.measure.kind import DTYPE_BYTES
from profiles.measure.protocol import error_words, timing_of
from profiles.measure.ranks import RankGroup, Ranks
from profiles.measure.timer import seconds_of
from profiles.observations.records import OperatorObservation, Scalar

SAMPLES = 5
PRODUCTS = 8
"""Products of one sample."""
MOST_COLLECTIVES = 64
MOST_PRODUCTS = 512
DEVICE_MATMUL = 4096
HOST_MATMUL = 256


@dataclass(frozen=True, slots=True)
class _Pair:
    """A product and a collective that can run beside each other on this rank."""

    ranks: Ranks
    product: Callable[[], object]
    call: CollectiveCall


def measure_overlap(
    ranks: Ranks, plan: CollectivePlan, shapes: Sequence[GroupShape], expired: Callable[[], bool]
) -> tuple[list[OperatorObservation], int]:
    """Both slowdowns for every collective over the largest group in a node and with one rank a node.

    Returns the observations (rank 0's are the ones to keep) and how many collectives were left out because rank 0's
    ``expired()`` was true.
    """
    found: list[OperatorObservation] = []
    left_out = 0
    size = plan.overlap_matmul or (HOST_MATMUL if ranks.device.is_host else DEVICE_MATMUL)
    for shape in _telling(shapes):
        with ranks.grouped(shape) as mine:
            for operation, variant in _operations(plan, shape):
                if ranks.decided(1.0 if expired() else 0.0):
                    left_out += 1
                    continue
                elements = num_elements(plan.overlap_bytes, plan.dtypes[0], shape.size)
                pair = _prepared(ranks, plan, mine, (operation, variant), elements, size)
                found += _measured(ranks, operation, pair, _detail(plan, shape, elements, size), plan.dtypes[0])
    return found, left_out


def _operations(plan: CollectivePlan, shape: GroupShape) -> list[tuple[str, str]]:
    return [
        (operation, variant)
        for operation, variant in OPERATIONS
        if variant not in ("skewed", "one_way")
        and (not plan.operations or operation in plan.operations)
        and (operation != "send_recv" or shape.size == 2)
    ]


def _telling(shapes: Sequence[GroupShape]) -> list[GroupShape]:
    """The largest group inside a node and the largest with one rank a node."""
    chosen = []
    for placement in ("contiguous", "one_per_node"):
        of_kind = [shape for shape in shapes if shape.placement == placement]
        if of_kind:
            chosen.append(max(of_kind, key=lambda shape: (shape.size, -shape.stride)))
    return chosen


def _prepared(
    ranks: Ranks, plan: CollectivePlan, mine: RankGroup, what: tuple[str, str], elements: int, size: int
) -> _Pair | str:
    """Both, warmed up; or why not.  ``what``: operation and variant."""
    dtype = plan.dtypes[0]
    try:
        call = prepare_collective(ranks, mine, *what, elements, dtype)
        pair = _Pair(ranks, _product(ranks, size, dtype), call)
        for _ in range(plan.warm_ups):
            call.run()
            pair.product()
        ranks.device.synchronize()
    except (RuntimeError, NotImplementedError, ValueError, TypeError) as caught:
        return error_words(caught)
    return pair


def _detail(plan: CollectivePlan, shape: GroupShape, elements: int, size: int) -> dict[str, Scalar]:
    return {
        "group_size": shape.size,
        "stride": shape.stride,
        "num_nodes": shape.num_nodes,
        "concurrent_groups": shape.num_siblings,
        "placement": shape.placement,
        "size_bytes": elements * DTYPE_BYTES[plan.dtypes[0]],
        "matmul_size": size,
    }


def _measured(
    ranks: Ranks, operation: str, pair: _Pair | str, detail: dict[str, Scalar], dtype: str
) -> list[OperatorObservation]:
    """Two observations; failed ones where any rank could not prepare its pair."""
    names = (f"matmul_under_{operation}", f"{operation}_under_matmul")
    failed = ranks.maxima([1.0 if isinstance(pair, str) else 0.0])[0]
    if failed or isinstance(pair, str):
        why = pair if isinstance(pair, str) else "another rank failed"
        return [
            OperatorObservation("other", name, None, dtype=dtype, detail=detail, ok=False, error=why) for name in names
        ]
    both = (_product_beside(pair), _collective_beside(pair))
    return [
        OperatorObservation(
            "other",
            name,
            timing_of(beside),
            dtype=dtype,
            detail={**detail, "alone_s": sorted(alone)[len(alone) // 2], "slowdown": _ratio(beside, alone)},
        )
        for name, (alone, beside) in zip(names, both, strict=True)
    ]


def _product(ranks: Ranks, size: int, dtype: str) -> Callable[[], object]:
    torch = import_torch()
    left, right = ranks.device.normal((size, size), dtype), ranks.device.normal((size, size), dtype)
    return lambda: torch.mm(left, right)


def _product_beside(pair: _Pair) -> tuple[list[float], list[float]]:
    """Seconds of one product (alone, while enough collectives are in flight to cover all products of the sample)."""
    ranks = pair.ranks
    alone = _samples(ranks, lambda: seconds_of(ranks.device, lambda: _products(pair)) / PRODUCTS)
    collective_s = max(ranks.maxima([seconds_of(ranks.device, pair.call.run)])[0], 1e-7)
    covering = min(max(round(2 * PRODUCTS * max(alone) / collective_s), 2), MOST_COLLECTIVES)

    def sample() -> float:
        flying = [work for _ in range(covering) for work in pair.call.start()]
        spent_s = seconds_of(ranks.device, lambda: _products(pair)) / PRODUCTS
        for work in flying:
            work.wait()
        return spent_s

    return alone, _samples(ranks, sample)


def _collective_beside(pair: _Pair) -> tuple[list[float], list[float]]:
    """Seconds of one collective (alone, while products keep the compute units busy)."""
    ranks = pair.ranks
    alone = _samples(ranks, lambda: seconds_of(ranks.device, pair.call.run))
    if ranks.device.is_host:
        return alone, _beside_thread(pair)
    product_s = max(seconds_of(ranks.device, lambda: _products(pair)) / PRODUCTS, 1e-7)
    covering = min(max(round(3 * max(alone) / product_s), PRODUCTS), MOST_PRODUCTS)
    stream = ranks.device.module.Stream(device=ranks.device.device)

    def sample() -> float:
        with ranks.device.module.stream(stream):
            for _ in range(covering):
                pair.product()
        spent_s = seconds_of(ranks.device, pair.call.run)
        stream.synchronize()
        return spent_s

    return alone, _samples(ranks, sample)


def _beside_thread(pair: _Pair) -> list[float]:
    """The CPU has no streams: a second thread multiplies meanwhile."""
    stop = threading.Event()

    def multiply() -> None:
        while not stop.is_set():
            pair.product()

    busy = threading.Thread(target=multiply, daemon=True)
    busy.start()
    try:
        return _samples(pair.ranks, lambda: seconds_of(pair.ranks.device, pair.call.run))
    finally:
        stop.set()
        busy.join()


def _products(pair: _Pair) -> None:
    for _ in range(PRODUCTS):
        pair.product()


def _samples(ranks: Ranks, sample: Callable[[], float]) -> list[float]:
    """Maxima over the ranks; every sample begins together."""
    taken = []
    for _ in range(SAMPLES):
        # No synchronisation with the device's other stream: the products beside must keep running.
        ranks.communication.barrier()
        taken.append(sample())
    return ranks.maxima(taken)


def _ratio(beside: list[float], alone: list[float]) -> float:
    return round(sorted(beside)[len(beside) // 2] / sorted(alone)[len(alone) // 2], 4)
