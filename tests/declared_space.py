"""Every strategy of a small problem, by plain loops over every field: the declared space, written out a second time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from planner.backends.asked import the_software
from planner.backends.rules.columns import Columns
from planner.model.spec import ModelSpec
from planner.question.problem import Problem
from planner.search.choices import VIRTUAL_STAGES
from planner.search.reliefs import relief_choices
from planner.strategy.relief_layers import policies
from planner.strategy.rows import StrategyRows
from planner.strategy.schedules import SCHEDULE_NAMES
from solver.arrays import Ints

COLUMNS = (
    *("tp", "sp", "cp", "ring", "ep", "etp", "pp", "vpp", "group", "schedule", "dp", "micro_batch_size"),
    *("num_microbatches", "pp_inner", "overlap_tp", "overlap_ep", "dispatcher", "dp_replicate", "zero", "relief"),
    *("optimizer_offload", "overlap_grad", "overlap_param"),
)
NEUTRAL: dict[str, int | str | bool] = {
    **dict.fromkeys(("tp", "cp", "ep", "etp", "pp", "vpp", "dp", "dp_replicate", "dp_shard"), 1),
    **dict.fromkeys(
        ("sp", "optimizer_offload", "activation_offload", "overlap_tp", "overlap_ep", "fp8_parameters"), False
    ),
    "recompute": "none",
    "zero_stage": 0,
    "schedule": "1f1b",
    "dispatcher": "alltoall",
}


def all_rows(problem: Problem, num_devices: int) -> StrategyRows:
    """Every legal strategy of the declared space."""
    found = [
        (*grid, *rest)
        for grid in _grids(problem, num_devices)
        for rest in _switches(problem, dict(zip(("tp", "cp", "pp", "dp", "ep", "etp"), grid, strict=True)))
    ]
    order = ("tp", "cp", "pp", "dp", "ep", "etp", *_REST)
    table = np.array(found, dtype=np.int64).reshape(-1, len(order))
    columns = {name: table[:, order.index(name)] for name in COLUMNS if name in order}
    return StrategyRows(**columns, fp8_parameters=_stored_in_8_bit(problem, columns))


def _stored_in_8_bit(problem: Problem, columns: dict[str, Ints]) -> Ints:
    """Where a run in fp8 stores its weights so: with the distributed optimizer, offloaded under one recipe alone."""
    pinned, workload = problem.constraints.pins.get("fp8_parameters"), problem.workload
    if pinned is not None:
        return np.full(len(columns["zero"]), int(pinned))
    able = _columns(problem).fp8_parameters and workload.precision == "fp8"
    able = able and workload.optimizer in ("adam", "adam_bf16_states", "adam_precision_aware", "sgd")
    kept = (columns["optimizer_offload"] == 0) | (workload.fp8_recipe == "delayed")
    stored: Ints = ((columns["zero"] == 1) & kept & able).astype(np.int64)
    return stored


_REST = (
    *(
        "micro_batch_size",
        "num_microbatches",
        "sp",
        "ring",
        "overlap_tp",
        "overlap_ep",
        "dispatcher",
        "schedule",
        "vpp",
        "group",
    ),
    *("pp_inner", "zero", "dp_replicate", "relief", "optimizer_offload", "overlap_grad", "overlap_param"),
)


def _columns(problem: Problem) -> Columns:
    return the_software(problem).release.space.columns


def _allowed(problem: Problem, **values: int | str | bool) -> bool:
    constraints = problem.constraints
    wanted = policies(constraints.pins) | {name: NEUTRAL[name] for name in constraints.forbids}
    return all(wanted.get(name, value) == value for name, value in values.items())


def _divisors(number: int) -> list[int]:
    return [value for value in range(1, number + 1) if number % value == 0]


def _splits_heads(model: ModelSpec, ways: int) -> bool:
    """Query heads split evenly; key/value heads split or are copied evenly."""
    for kind in model.layer_kinds:
        attention = kind.attention
        if attention.num_heads % ways:
            return False
        if attention.kind == "gqa" and attention.num_kv_heads % ways and ways % attention.num_kv_heads:
            return False
    return True


def _grids(problem: Problem, devices: int) -> Iterator[tuple[int, ...]]:
    model = problem.model
    mixtures = [kind.moe for kind in model.layer_kinds if kind.moe is not None]
    widths = [kind.mlp.intermediate_size for kind in model.layer_kinds if kind.mlp is not None]
    widths += [moe.shared_intermediate_size for moe in mixtures]
    expert_tensor = _columns(problem).expert_tensor_parallel
    for tp, cp, pp in itertools.product(_divisors(devices), repeat=3):
        if model.encoder is not None and cp * pp > 1:
            continue
        if devices % (tp * cp * pp) or not _splits_heads(model, tp) or any(width % tp for width in widths):
            continue
        dp = devices // (tp * cp * pp)
        if problem.workload.global_batch_size % dp or not _allowed(problem, tp=tp, cp=cp, pp=pp, dp=dp):
            continue
        for ep in range(1, devices + 1):
            for etp in _divisors(tp):
                if mixtures:
                    fits = not any(moe.num_experts % ep or moe.expert_intermediate_size % etp for moe in mixtures)
                    fits = fits and (tp * cp * dp) % (ep * etp) == 0 and (expert_tensor or etp == 1)
                else:
                    fits = ep == etp == 1
                if fits and _allowed(problem, ep=ep, etp=etp):
                    yield tp, cp, pp, dp, ep, etp


def _switches(problem: Problem, grid: dict[str, int]) -> Iterator[tuple[int, ...]]:
    space = _columns(problem)
    per_replica = problem.workload.global_batch_size // grid["dp"]
    moe = any(kind.moe is not None for kind in problem.model.layer_kinds)
    for size, sp, kind in itertools.product(_divisors(per_replica), (True, False), ("none", *space.cp_kinds)):
        count = per_replica // size
        if (sp and grid["tp"] == 1) or (moe and grid["tp"] > 1 and not sp) or (kind == "none") != (grid["cp"] == 1):
            continue
        pieces = grid["cp"] * (2 if kind == "ring" else 1) * (grid["tp"] if sp else 1)
        if problem.workload.sequence_length % pieces:
            continue
        if kind == "all_to_all" and not _splits_heads(problem.model, grid["tp"] * grid["cp"]):
            continue
        if not _allowed(problem, micro_batch_size=size, num_microbatches=count, sp=sp, cp_kind=kind):
            continue
        expert_overlaps = (False, True) if grid["ep"] > 1 and True in space.overlap_ep else (False,)
        for overlap_ep, off in itertools.product(expert_overlaps, _on_or_off(problem)):
            overlap_tp = sp and off and space.overlap_tp
            if not _allowed(problem, overlap_ep=overlap_ep, overlap_tp=overlap_tp):
                continue
            dispatcher = _dispatcher(problem, grid["ep"], grid["etp"])
            if dispatcher is None:
                continue
            head = (size, count, int(sp), int(kind == "ring"), int(overlap_tp), int(overlap_ep), dispatcher)
            tails = itertools.product(
                _layouts(problem, grid, count), _states(problem, grid), _overlaps(problem, grid["pp"])
            )
            yield from ((*head, *layout, *states, *overlaps) for layout, states, overlaps in tails)


def _dispatcher(problem: Problem, ep: int, etp: int) -> int | None:
    """DeepEP on DGX nodes of eight where it has a configuration, HybridEP inside larger NVLink domains; pins win."""
    words = ("alltoall", "allgather", "deepep", "hybridep")
    if ep == 1:
        return 0
    pinned = problem.constraints.pins.get("dispatcher")
    if pinned is not None or "dispatcher" in problem.constraints.forbids:
        word = str(pinned or "alltoall")
        return words.index(word) if word in _columns(problem).dispatchers else None
    if not problem.constraints.backends[0].startswith("megatron") or "=" in problem.constraints.backends[0]:
        return 0
    pool = problem.cluster.pools[0]
    domain = max(pool.scale_up.domain_size, pool.devices_per_node)
    if etp > 1 or pool.scale_up.kind != "switch" or problem.workload.precision == "fp16":
        return 0
    if pool.device.architecture not in ("ampere", "hopper", "blackwell"):
        return 0
    if domain > 8:
        return 3 if ep <= domain else 0
    known = ep in (2, 4, 8, 16, 24, 32, 64, 128, 144, 160)
    return 2 if known and (ep <= domain or domain == 8) else 0


def _layouts(problem: Problem, grid: dict[str, int], count: int) -> list[tuple[int, int, int, int]]:
    space, pp, layers = _columns(problem), grid["pp"], problem.model.num_layers
    found = []
    each = math.ceil(layers / pp)
    divisors = {number for number in range(1, min(each, 24) + 1) if each % number == 0}
    for name, vpp in itertools.product(space.schedules, sorted({1, *VIRTUAL_STAGES} | divisors)):
        factors = {"interleaved": space.group_factors, "interleaved_zb": (1,)}.get(name)
        groups = [factor * pp for factor in factors] if factors else [0]
        if factors and space.derived_group:
            # torch 2.13.0 distributed/pipelining/schedules.py:2935-2941: so many rounds, all of one size.
            groups = [count // max(1, count // pp)]
        for group, inner in itertools.product(groups, space.axis_orders):
            if group and space.derived_group and (count % group or count < pp):
                continue
            order = "tp-cp-ep-pp-dp" if inner else "tp-cp-ep-dp-pp"
            if inner and (pp == 1 or grid["dp"] == 1):
                continue
            if inner and (grid["cp"] > 1 or grid["ep"] > 1) and grid["etp"] * grid["ep"] != grid["tp"] * grid["cp"]:
                continue
            # The ends of a pipeline may be empty where the back-end says so.
            if pp * vpp > layers + 2 * space.empty_ends or not _runs(name, pp, vpp, count, group):
                continue
            if _allowed(problem, schedule=name, vpp=vpp, microbatch_group_size=group, axis_order=order):
                found.append((SCHEDULE_NAMES.index(name), vpp, group, inner))
    return found


def _runs(name: str, pp: int, vpp: int, count: int, group: int) -> bool:
    if pp == 1:
        return name == "1f1b" and vpp == 1
    if name == "looped_bfs":
        return vpp > 1
    if name in ("interleaved", "interleaved_zb"):
        return vpp > 1 and group <= count and (count % group == 0 or count % group >= pp)
    if name in ("zbv", "dualpipev"):
        return vpp == 2 and count >= 2 * pp
    return vpp == 1


def _states(problem: Problem, grid: dict[str, int]) -> list[tuple[int, int, int, int]]:
    space, dp = _columns(problem), grid["dp"]
    stages = space.zero_stages_with_pipeline if grid["pp"] > 1 else space.zero_stages
    ways = grid["tp"] * grid["cp"] * dp // (grid["ep"] * grid["etp"])
    moe = any(kind.moe is not None for kind in problem.model.layer_kinds)
    found = []
    for zero, replicate, (code, relief), offload in itertools.product(
        stages, _divisors(dp), enumerate(relief_choices(problem)), (False, True)
    ):
        if (zero == 0 and (replicate > 1 or offload)) or (offload and not space.optimizer_offload):
            continue
        if moe and replicate > 1 and ways % replicate:
            continue
        if (relief.offload and not space.activation_offload) or relief.recompute not in space.recompute:
            continue
        if _allowed(
            problem,
            zero_stage=zero,
            dp_replicate=replicate,
            dp_shard=dp // replicate,
            recompute=relief.recompute,
            activation_offload=relief.offload,
            optimizer_offload=offload,
        ):
            found.append((zero, replicate, code, int(offload)))
    return found


def _has_dense(model: ModelSpec) -> bool:
    return any(
        kind.mlp is not None or (kind.moe is not None and kind.moe.shared_intermediate_size > 0)
        for kind in model.layer_kinds
    )


def _overlaps(problem: Problem, pp: int) -> list[tuple[int, int]]:
    """(gradient, parameter) overlap: what a back-end's rules leave of all four; both on where there are no rules."""
    tries = tuple(itertools.product(_on_or_off(problem), repeat=2))
    if problem.constraints.backends == ("native",):  # its trainer reduces after the last micro-batch of a pipeline
        tries = ((pp == 1, True),)
    return [
        (int(reduce), int(gather))
        for reduce, gather in tries
        if _allowed(problem, overlap_grad_reduce=reduce, overlap_param_gather=gather)
    ]


def _on_or_off(problem: Problem) -> tuple[bool, ...]:
    return (True, False) if problem.constraints.backends[0] in ("megatron", "deepspeed") else (True,)
