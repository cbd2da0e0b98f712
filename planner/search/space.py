"""Which strategies are there?  The declared space, enumerated as columns.

Two levels keep memory small: a *layout* fixes everything that the time of a layer and the schedule depend on (degrees,
micro-batch, schedule, overlap of tp and ep); its *leaves* add dp_replicate, ZeRO level, memory relief and optimizer
offload.  A layout's bound holds for all its leaves, so leaves of a hopeless layout are never written out, but counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from planner.problem import Problem
from planner.search.choices import GROUP_FACTORS, RELIEFS, TARGET_SPACES, VIRTUAL_STAGES, checked_pins
from planner.search.legality import RULES, ModelShape, model_shape
from planner.strategy_rows import SCHEDULES, StrategyRows

Ints = NDArray[np.int64]
LEAF_RULES = tuple(rule for rule in RULES if rule.reason in ("expert_grid", "replicate", "hsdp", "optimizer_offload"))
"""Rules that a leaf can break although its layout keeps them all."""
LEAF_COLUMNS = ("dp_replicate", "zero", "relief", "optimizer_offload")
PIN_COLUMNS = {
    "sp": "sp",
    "micro_batch_size": "micro_batch_size",
    "num_microbatches": "num_microbatches",
    "microbatch_group_size": "group",
    "zero_stage": "zero",
    "overlap_grad_reduce": "overlap_grad",
    "overlap_param_gather": "overlap_param",
}


def divisors(number: int) -> list[int]:
    """All divisors, ascending."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


class Space:
    """All strategies of a problem for a given number of devices."""

    def __init__(self, problem: Problem, num_devices: int) -> None:
        self.problem = problem
        self.pins = checked_pins(problem.constraints)
        self.target = TARGET_SPACES[problem.constraints.target]
        self.shape: ModelShape = model_shape(problem.model, problem.workload, num_devices)
        self.reliefs = RELIEFS
        self.pruned: Counter[str] = Counter()

    @cached_property
    def layouts(self) -> StrategyRows:
        """Every legal layout; what legality removes is counted in ``pruned`` (in leaves)."""
        parts = [part for grid in self._grids() for part in self._with_schedule(grid)]
        if not parts:
            return self._empty()
        rows = StrategyRows.concatenate(parts)
        keep = self._pinned(rows)
        self.pruned["pinned or forbidden"] += int((~keep).sum()) * self.leaves_per_layout
        rows = rows.take(keep)
        for rule in RULES:
            broken = rule.broken(rows, self.shape)
            if broken.any():
                self.pruned[rule.reason] += int(broken.sum()) * self.leaves_per_layout
                rows = rows.take(~broken)
        return rows

    @property
    def leaves_per_layout(self) -> int:
        """Leaves of a layout with one dp_replicate choice; legality counts removed layouts in this unit."""
        return len(self._zero_stages(1)) * len(self._relief_codes()) * len(self._offloads())

    def leaf_counts(self, layouts: StrategyRows) -> Ints:
        """Number of leaves of each layout (dp_replicate divisors included): [R]."""
        counts = np.zeros(len(layouts), dtype=np.int64)
        keys, index = np.unique(np.stack([layouts.dp, layouts.pp > 1], axis=1), axis=0, return_inverse=True)
        for position, (dp, piped) in enumerate(keys.tolist()):
            counts[index.reshape(-1) == position] = len(self._leaf_table(dp, bool(piped)))
        return counts

    def leaves_with_key(self, layouts: StrategyRows, key: Ints) -> tuple[StrategyRows, Ints]:
        """Write out the legal leaves of some layouts, each with the ``key`` of its layout."""
        parts: list[StrategyRows] = []
        key_parts: list[Ints] = []
        keys, index = np.unique(np.stack([layouts.dp, layouts.pp > 1], axis=1), axis=0, return_inverse=True)
        for position, (dp, piped) in enumerate(keys.tolist()):
            here = index.reshape(-1) == position
            group = layouts.take(here)
            table = self._leaf_table(dp, bool(piped))
            if len(table) == 0:
                continue
            key_parts.append(np.repeat(key[here], len(table)))
            repeated = {f.name: np.repeat(getattr(group, f.name), len(table)) for f in fields(StrategyRows)}
            for column, name in enumerate(LEAF_COLUMNS):
                repeated[name] = np.tile(table[:, column], len(group))
            parts.append(StrategyRows(**repeated))
        if not parts:
            return self._empty(), np.zeros(0, dtype=np.int64)
        rows, keys_of_rows = StrategyRows.concatenate(parts), np.concatenate(key_parts)
        for rule in LEAF_RULES:
            broken = rule.broken(rows, self.shape)
            if broken.any():
                rows, keys_of_rows = rows.take(~broken), keys_of_rows[~broken]
        return rows, keys_of_rows

    def _grids(self) -> list[tuple[int, int, int, int, int, int]]:
        """(tp, cp, pp, dp, ep, etp) whose product fills the devices; hopeless degrees are counted and dropped."""
        shape, found = self.shape, []
        for tp in self._degrees("tp", shape.num_devices, self._tp_allowed):
            for cp in self._degrees("cp", shape.num_devices // tp, self._cp_allowed):
                for pp in self._degrees("pp", shape.num_devices // (tp * cp), lambda p: p <= shape.num_layers):
                    dp = shape.num_devices // (tp * cp * pp)
                    if shape.global_batch_size % dp != 0:
                        self.pruned["global_batch"] += self.leaves_per_layout
                        continue
                    found += [(tp, cp, pp, dp, ep, etp) for ep, etp in self._expert_degrees(tp, cp, dp)]
        return found

    def _degrees(self, name: str, limit: int, allowed: object) -> list[int]:
        pinned = self.pins.get(name)
        values = [d for d in divisors(limit) if pinned is None or d == pinned]
        kept = [d for d in values if allowed(d)]  # type: ignore[operator]
        self.pruned[{"tp": "heads", "cp": "sequence", "pp": "layers"}[name]] += (
            len(values) - len(kept)
        ) * self.leaves_per_layout
        return kept

    def _tp_allowed(self, tp: int) -> bool:
        shape = self.shape
        widths = all(width % tp == 0 for width in (*shape.heads, *shape.intermediate_sizes))
        return widths and all(kv % tp == 0 or tp % kv == 0 for kv in shape.kv_heads)

    def _cp_allowed(self, cp: int) -> bool:
        return self.shape.sequence_length % cp == 0

    def _expert_degrees(self, tp: int, cp: int, dp: int) -> list[tuple[int, int]]:
        if not self.shape.is_moe:
            return [(1, 1)]
        pairs = []
        smallest = min(self.shape.experts)
        for ep in divisors(smallest):
            if self.pins.get("ep", ep) != ep:
                continue
            for etp in divisors(tp) if self.target.expert_tensor_parallel else [1]:
                if self.pins.get("etp", etp) == etp and (tp * cp * dp) % (ep * etp) == 0:
                    pairs.append((ep, etp))
        return pairs

    def _with_schedule(self, grid: tuple[int, int, int, int, int, int]) -> list[StrategyRows]:
        """All micro-batch, schedule and switch choices of one grid, as columns."""
        tp, cp, pp, dp, ep, etp = grid
        per_replica = self.shape.global_batch_size // dp
        inner = self._schedules(pp, per_replica)
        if len(inner) == 0:
            self.pruned["schedule"] += self.leaves_per_layout
            return []
        switches = [
            (sp, ring, order, overlap_ep)
            for sp in ([1] if self.shape.is_moe else [1, 0]) if tp > 1 or sp == 1
            for ring in self._cp_codes(cp)
            for order in (self.target.axis_orders if pp > 1 and dp > 1 else (0,))
            for overlap_ep in ((0, 1) if ep > 1 and self.target.overlap_ep else (0,))
        ]
        if self._off("cp", cp) or self._off("dp", dp) or self._off("pp", pp) or not switches:
            return []
        count = len(inner)
        parts = []
        for sp, ring, order, overlap_ep in switches:
            split = 1 if tp > 1 and sp else 0
            overlap_tp = int(self.pins.get("overlap_tp", bool(split)))
            parts.append(_rows(count, inner, (tp, split, cp, ring, ep, etp, pp, dp), order, overlap_tp, overlap_ep, self.pins))
        return parts

    def _off(self, name: str, value: int) -> bool:
        return self.pins.get(name, value) != value

    def _cp_codes(self, cp: int) -> Sequence[int]:
        if cp == 1:
            return (0,)
        kinds = [kind for kind in self.target.cp_kinds if self.pins.get("cp_kind", kind) == kind]
        return [int(kind == "ring") for kind in kinds]

    def _schedules(self, pp: int, per_replica: int) -> Ints:
        """(micro_batch_size, num_microbatches, schedule, vpp, group) choices for one pipeline: [C, 5]."""
        key = (pp, per_replica)
        if key not in self._schedule_cache:
            self._schedule_cache[key] = self._make_schedules(pp, per_replica)
        return self._schedule_cache[key]

    @cached_property
    def _schedule_cache(self) -> dict[tuple[int, int], Ints]:
        return {}

    def _make_schedules(self, pp: int, per_replica: int) -> Ints:
        choices = []
        allowed = [name for name in self.target.schedules if self.pins.get("schedule", name) == name]
        for size in divisors(per_replica):
            count = per_replica // size
            if self._off("micro_batch_size", size) or self._off("num_microbatches", count):
                continue
            for name in allowed:
                code = SCHEDULES.index(name)
                if name == "interleaved":
                    groups = [pp * factor for factor in GROUP_FACTORS if pp * factor <= count]
                    chunks = [v for v in VIRTUAL_STAGES if v * pp <= self.shape.num_layers]
                    choices += [(size, count, code, v, g) for v in chunks for g in groups if pp > 1 and _group_fits(count, g, pp)]
                elif name in ("zbv", "dualpipev"):
                    if pp > 1 and count >= 2 * pp and 2 * pp <= self.shape.num_layers:
                        choices.append((size, count, code, 2, 0))
                elif pp > 1 or name == "1f1b":
                    choices.append((size, count, code, 1, 0))
        return np.array(choices, dtype=np.int64).reshape(-1, 5)

    def _zero_stages(self, pp: int) -> list[int]:
        stages = self.target.zero_stages_with_pipeline if pp > 1 else self.target.zero_stages
        return [stage for stage in stages if self.pins.get("zero_stage", stage) == stage]

    def _relief_codes(self) -> list[int]:
        codes = []
        for code, relief in enumerate(self.reliefs):
            if "moe" in relief.modules and not self.shape.is_moe:
                continue
            if "mlp" in relief.modules and not self.shape.intermediate_sizes:
                continue
            if relief.offload and (not self.target.activation_offload or self.pins.get("activation_offload") is False):
                continue
            if self.pins.get("activation_offload") is True and not relief.offload:
                continue
            if relief.recompute == "selective" and not self.target.selective_recompute:
                continue
            if self.pins.get("recompute", relief.recompute) == relief.recompute:
                codes.append(code)
        return codes

    def _offloads(self) -> list[int]:
        allowed = [0, 1] if self.target.optimizer_offload else [0]
        pinned = self.pins.get("optimizer_offload")
        return [value for value in allowed if pinned is None or value == int(pinned)]

    def _leaf_table(self, dp: int, piped: bool) -> Ints:
        key = (dp, piped)
        if key not in self._leaf_cache:
            rows = [
                (replicate, zero, relief, offload)
                for zero in self._zero_stages(2 if piped else 1)
                for replicate in (divisors(dp) if zero else [1])
                if not self._off("dp_replicate", replicate) and not self._off("dp_shard", dp // replicate)
                # ZeRO over a single rank is plain data parallelism; cp still gives it ranks to shard over.
                for offload in (self._offloads() if zero else [0])
                for relief in self._relief_codes()
            ]
            self._leaf_cache[key] = np.array(rows, dtype=np.int64).reshape(-1, len(LEAF_COLUMNS))
        return self._leaf_cache[key]

    @cached_property
    def _leaf_cache(self) -> dict[tuple[int, bool], Ints]:
        return {}

    def _pinned(self, rows: StrategyRows) -> NDArray[np.bool_]:
        keep = np.ones(len(rows), dtype=bool)
        for name, value in self.pins.items():
            if name in ("tp", "cp", "ep", "etp", "pp", "vpp", "dp") or name in PIN_COLUMNS and PIN_COLUMNS[name] not in LEAF_COLUMNS:
                keep &= getattr(rows, PIN_COLUMNS.get(name, name)) == int(value)
            elif name == "axis_order":
                keep &= rows.pp_inner == int(value == "tp-cp-ep-pp-dp")
            elif name == "cp_kind" and value == "none":
                keep &= rows.cp == 1
            elif name == "overlap_ep":
                keep &= rows.overlap_ep == int(value)
        return keep

    def _empty(self) -> StrategyRows:
        return StrategyRows(*(np.zeros(0, dtype=np.int64) for _ in fields(StrategyRows)))


def _group_fits(count: int, group: int, pp: int) -> bool:
    rest = count % group
    return rest == 0 or rest >= pp


def _rows(
    count: int,
    inner: Ints,
    grid: tuple[int, int, int, int, int, int, int, int],
    order: int,
    overlap_tp: int,
    overlap_ep: int,
    pins: dict[str, int | str | bool],
) -> StrategyRows:
    tp, sp, cp, ring, ep, etp, pp, dp = (np.full(count, value, dtype=np.int64) for value in grid)
    zeros = np.zeros(count, dtype=np.int64)
    return StrategyRows(
        tp=tp,
        sp=sp,
        cp=cp,
        ring=ring,
        ep=ep,
        etp=etp,
        pp=pp,
        vpp=inner[:, 3],
        group=inner[:, 4],
        schedule=inner[:, 2],
        dp=dp,
        micro_batch_size=inner[:, 0],
        num_microbatches=inner[:, 1],
        pp_inner=zeros + order,
        overlap_tp=zeros + overlap_tp,
        overlap_ep=zeros + overlap_ep,
        dp_replicate=zeros + 1,
        zero=zeros,
        relief=zeros,
        optimizer_offload=zeros,
        overlap_grad=zeros + int(pins.get("overlap_grad_reduce", True)),
        overlap_param=zeros + int(pins.get("overlap_param_gather", True)),
    )
