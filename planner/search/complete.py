"""How does a strategy given in a few words become a whole one?  ``tp=8,pp=4,mbs=1`` -> ``Strategy``.

What is left open takes the usual value: data parallelism fills the devices, micro-batches fill the global batch,
sequence parallelism goes with tp, ZeRO-1 with data parallelism, 1F1B (interleaved when vpp > 1).
"""

from __future__ import annotations

from typing import Any

from planner.errors import DocumentInvalid
from planner.problem import Problem
from planner.search.choices import RELIEFS, checked_pins
from planner.strategy import Strategy


def complete_strategy(problem: Problem, given: dict[str, int | str | bool]) -> Strategy:
    """Fill in the rest of a strategy.  Raises DocumentInvalid for unknown fields and impossible divisions."""
    words = checked_pins(problem.constraints.model_copy(update={"pins": given, "forbids": ()}))
    tp, cp, pp = (int(words.get(name, 1)) for name in ("tp", "cp", "pp"))
    dp = _data_parallel(problem, words, tp * cp * pp)
    values: dict[str, Any] = {
        name: value for name, value in words.items() if name not in ("dp", "recompute", "activation_offload")
    }
    replicate = int(words.get("dp_replicate", 1))
    shard = int(words.get("dp_shard", max(1, dp // replicate)))
    values |= {"dp_replicate": replicate, "dp_shard": shard}
    values.setdefault("sp", tp > 1)
    values.setdefault("overlap_tp", bool(values["sp"]))
    values.setdefault("cp_kind", "ring" if cp > 1 else "none")
    values.setdefault("zero_stage", 1 if dp * cp > 1 else 0)
    values.setdefault("micro_batch_size", 1)
    values.setdefault("num_microbatches", _microbatches(problem, dp, int(values["micro_batch_size"])))
    vpp = int(values.setdefault("vpp", 2 if values.get("schedule") in ("zbv", "dualpipev") else 1))
    values.setdefault("schedule", "interleaved" if vpp > 1 else "1f1b")
    if values["schedule"] == "interleaved":
        values.setdefault("microbatch_group_size", pp)
    relief = _relief(problem, words)
    return Strategy(
        **values, recompute=relief.recompute, recompute_modules=relief.modules, activation_offload=relief.offload
    )


def _data_parallel(problem: Problem, words: dict[str, int | str | bool], model_parallel: int) -> int:
    if "dp" in words:
        return int(words["dp"])
    if "dp_shard" in words:
        return int(words["dp_shard"]) * int(words.get("dp_replicate", 1))
    devices = problem.cluster.num_devices
    if devices % model_parallel:
        raise DocumentInvalid(
            f"tp * cp * pp = {model_parallel} does not divide the {devices} devices",
            where="--strategy",
            hint="choose degrees whose product divides the number of devices",
        )
    return devices // model_parallel


def _microbatches(problem: Problem, dp: int, micro_batch_size: int) -> int:
    batch = problem.workload.global_batch_size
    if batch % (dp * micro_batch_size):
        raise DocumentInvalid(
            f"global batch size {batch} is not a multiple of dp {dp} * micro_batch_size {micro_batch_size}",
            where="--strategy",
            hint="change micro_batch_size, the degrees or --global-batch-size",
        )
    return batch // (dp * micro_batch_size)


def _relief(problem: Problem, words: dict[str, int | str | bool]) -> Any:
    """The first declared relief that has the named recompute policy and offload."""
    policy, offload = words.get("recompute", "none"), bool(words.get("activation_offload", False))
    moe = any(kind.moe is not None for kind in problem.model.layer_kinds)
    for relief in RELIEFS:
        if relief.recompute == policy and relief.offload == offload and ("moe" not in relief.modules or moe):
            return relief
    raise DocumentInvalid(
        f"recompute={policy} together with activation_offload is not part of the space",
        where="--strategy",
        hint="use one of them",
    )
