"""What a training plan looks up that a device's profile lacks: a short list, each with its command."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from profiles.device import Device
from profiles.prediction.fit_summary import axis_name
from profiles.prediction.profile import Profile

FEWEST_TOKENS = 8192
"""A micro-batch of one long sequence: tables that end below it are extrapolated in most plans."""
HEAD_DIM = "128"
"""Head size of most models that are trained today."""
COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv")
MOVED = ("norm", "activation", "embedding", "cross_entropy")
_MEASURE = "meshwright profile measure"
_ONE_NODE = f"torchrun --nproc-per-node auto --no-python {_MEASURE} --only collectives"
_TWO_NODES = (
    "torchrun --nnodes 2 --nproc-per-node auto --rdzv-backend c10d --rdzv-endpoint HOST:29500 --no-python"
    f" {_MEASURE} --only collectives"
)


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that is not measured, what a plan does instead, and the command that measures it on such a device."""

    code: str
    what: str
    command: str


def training_gaps(profile: Profile, device: Device) -> tuple[Gap, ...]:
    """Everything that is missing for training plans of ``device``, what weighs most first."""
    return (*_products(profile, device), *_attention(profile), *_moved(profile), *_groups(profile))


def _products(profile: Profile, device: Device) -> Iterator[Gap]:
    dtypes = ["bf16" if "bf16" in device.peak_flops_per_s else "fp16"]
    dtypes += ["fp8"] if "fp8" in device.peak_flops_per_s else []
    for dtype in dtypes:
        command = f"{_MEASURE} --only matmul --dtype {dtype}"
        table = profile.operators.get(("matmul", dtype, ""))
        if table is None:
            yield Gap(f"no-matmul-{dtype}", f"no matrix products in {dtype}: the datasheet answers", command)
            continue
        lent = table.origin.transferred_from
        if lent:
            yield Gap(f"transferred-matmul-{dtype}", f"matrix products in {dtype} are transferred from {lent}", command)
        yield from _short("matmul", dtype, "", profile, command)
    if ("matmul", dtypes[0], "") in profile.operators and ("matmul", dtypes[0], "dgrad") not in profile.operators:
        yield Gap(
            "no-gradients",
            "no gradients of matrix products: they are looked up as forward products of the same sizes",
            f"{_MEASURE} --only matmul --dtype {dtypes[0]}",
        )
    if not any(operator == "grouped_matmul" for operator, _, _ in profile.operators):
        yield Gap(
            "no-grouped-matmul",
            "no grouped products: experts are looked up as one plain product of all their rows",
            f"{_MEASURE} --only grouped_matmul",
        )


def _attention(profile: Profile) -> Iterator[Gap]:
    command = f"{_MEASURE} --only attention"
    table = profile.operators.get(("attention", "bf16", HEAD_DIM))
    if table is None:
        known = any(operator == "attention" for operator, _, _ in profile.operators)
        instead = "the nearest head size answers" if known else "the datasheet answers"
        yield Gap("no-attention", f"no attention with head size {HEAD_DIM} in bf16: {instead}", command)
        return
    lent = table.origin.transferred_from
    if lent:
        yield Gap("transferred-attention", f"attention in bf16 is transferred from {lent}", command)
    yield from _short("attention", "bf16", HEAD_DIM, profile, command)


def _short(operator: str, dtype: str, variant: str, profile: Profile, command: str) -> Iterator[Gap]:
    """A table whose curves end before the sizes of training."""
    largest = float(profile.operators[operator, dtype, variant].curves.axis[-1])
    if largest < FEWEST_TOKENS:
        what = f"{operator} in {dtype} ends at {axis_name(operator)} {largest:,.0f}: more is extrapolated"
        yield Gap(f"short-{operator}-{dtype}", what, command)


def _moved(profile: Profile) -> Iterator[Gap]:
    known = {operator for operator, _, _ in profile.operators}
    absent = [name for name in MOVED if name not in known]
    if absent:
        names = ", ".join(name.replace("_", " ") for name in absent)
        yield Gap(
            "no-memory-bound-operators",
            f"no {names}: memory bandwidth of the datasheet answers",
            f"{_MEASURE} --only {','.join(absent)}",
        )


def _groups(profile: Profile) -> Iterator[Gap]:
    inside = {key.operation for key in profile.collectives if key.num_nodes == 1}
    absent = [name for name in COLLECTIVES if name not in inside]
    if absent:
        what = f"no {', '.join(absent)} inside a node: the network model answers"
        yield Gap("no-collectives-inside-a-node", what, _ONE_NODE)
    across = {key.operation for key in profile.collectives if key.num_nodes > 1}
    absent = [name for name in COLLECTIVES if name not in across]
    if absent:
        names = "groups" if len(absent) == len(COLLECTIVES) else ", ".join(absent)
        what = f"no {names} across nodes: the network model answers, uncorrected"
        yield Gap("no-collectives-across-nodes", what, f"on each node: {_TWO_NODES}")
