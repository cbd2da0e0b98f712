"""The strategies that there are: the declared space, enumerated as columns.

Four levels keep memory and time small.  A *core* fixes what the time of a layer depends on: degrees, micro-batch,
sequence and context parallelism, overlap.  Its *layouts* add the schedule, virtual stages and the axis order; their
*shardings* add dp_replicate, the ZeRO level and optimizer offload; *leaves* add memory relief and are complete
strategies.  A bound holds for everything under it, so what is hopeless is never written out, but counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cached_property

import numpy as np

from planner.backends.asked import the_software
from planner.backends.rules.columns import Columns
from planner.backends.rules.fp8_parameters import fp8_parameters_problem
from planner.backends.rules.legality import RULES, LegalityRule, ModelShape, model_shape
from planner.question.problem import Problem
from planner.search.backend_rules import BackEndRules
from planner.search.choices import checked_pins
from planner.search.chunk_choices import chunk_choices
from planner.search.core_rows import CORE_COLUMNS, core_rows
from planner.search.reliefs import relief_choices
from planner.strategy.fields import OF_RELIEF
from planner.strategy.relief_layers import WHERE_NEEDED, relief_layers
from planner.strategy.rows import StrategyRows, distinct_rows
from planner.strategy.schedules import SCHEDULE_NAMES
from planner.strategy.strategy import DISPATCHERS
from solver.arrays import Ints

SCHEDULE_COLUMNS = ("schedule", "vpp", "group", "pp_inner")
SHARDING_COLUMNS = ("dp_replicate", "zero", "optimizer_offload", "overlap_grad", "overlap_param", "fp8_parameters")
_NO_PIPELINE = ("1f1b",)
_SHARDING_REASONS = ("replicate", "hsdp", "optimizer_offload")
_LAYOUT_REASONS = ("layers", "inner_layers", "chunks", "interleaved", "v_microbatches", "axis_order")
SHARDING_RULES = tuple(rule for rule in RULES if rule.reason in (*_SHARDING_REASONS, "expert_grid"))
LAYOUT_RULES = tuple(rule for rule in RULES if rule.reason in _LAYOUT_REASONS)
CORE_RULES = tuple(rule for rule in RULES if rule.reason not in (*_SHARDING_REASONS, *_LAYOUT_REASONS))


def divisors(number: int) -> list[int]:
    """All divisors, ascending."""
    small = [d for d in range(1, int(number**0.5) + 1) if number % d == 0]
    return sorted({*small, *(number // d for d in small)})


class Space:
    """All strategies of a back-end for a number of devices, level by level; ``columns`` replaces the back-end's."""

    def __init__(self, problem: Problem, num_devices: int, columns: Columns | None = None) -> None:
        self.problem = problem
        self._rules = BackEndRules(problem)
        self.pins = checked_pins(problem.constraints)
        self.columns = columns or the_software(problem).release.space.columns
        self.shape: ModelShape = model_shape(
            problem.model, problem.workload, num_devices, empty_ends=self.columns.empty_ends
        )
        self._context_kinds = self.columns.context_kinds(denoiser=self.shape.has_denoiser)
        self.reliefs = relief_choices(problem)
        self.pruned: Counter[str] = Counter()
        """Combinations of degrees refused before anything was enumerated under them, by reason."""
        self.illegal: Counter[str] = Counter()
        """Enumerated strategies that a rule refuses, by reason; counted where their layout or sharding is."""
        self._tables: dict[tuple[int, ...], Ints] = {}

    @cached_property
    def cores(self) -> StrategyRows:
        """Every legal core; what legality removes is counted in ``pruned`` (in cores)."""
        columns = self._with_batch(self._grids())
        if columns.shape[1] == 0:
            return self._empty()
        rows, legal = core_rows(columns), np.ones(columns.shape[1], dtype=np.bool_)
        for rule in CORE_RULES:
            broken = rule.broken(rows, self.shape) & legal
            if broken.any():
                self.pruned[rule.reason] += int(broken.sum())
                legal &= ~broken
        # Only what a core fixes is picked; the other columns are one and the same for all.
        return rows if legal.all() else core_rows(columns.take(np.flatnonzero(legal), axis=1))

    def layouts(self, cores: StrategyRows, key: Ints) -> tuple[StrategyRows, Ints]:
        """Write out the legal layouts of some cores, each with the ``key`` of its core."""
        grown = self._expand(cores, key, ("pp", "num_microbatches", "dp"), self._schedule_table, SCHEDULE_COLUMNS)
        return self._legal(*grown, LAYOUT_RULES, lambda rows, _key: self.leaves_of_layouts(rows))

    def shardings(
        self,
        layouts: StrategyRows,
        key: Ints,
        offloads: tuple[int, ...] | None = None,
        stand_for: Ints | None = None,
    ) -> tuple[StrategyRows, Ints]:
        """Write out the legal shardings of some layouts, each with the ``key`` of its layout; ascending in dp and pp.

        ``offloads`` restricts optimizer offload to some of its values; a layout counts for ``stand_for[key]`` ones.
        """

        def strategies(rows: StrategyRows, key: Ints) -> int:
            count = len(rows) if stand_for is None else int(stand_for[key].sum())
            return count * len(self.relief_codes)

        def table(dp: int, pp: int) -> Ints:
            rows = self._sharding_table(dp, pp)
            return rows if offloads is None else rows[[offload in offloads for offload in rows[:, 2].tolist()]]

        grown = self._expand(layouts, key, ("dp", "pp"), table, SHARDING_COLUMNS)
        return self._legal(*grown, SHARDING_RULES, strategies)

    def leaves(self, shardings: StrategyRows, key: Ints) -> tuple[StrategyRows, Ints]:
        """Write out the leaves of some shardings, each with the ``key`` of its sharding."""
        return self._expand(shardings, key, (), self._relief_table, ("relief",))

    def leaf_counts(self, cores: StrategyRows) -> Ints:
        """Declared strategies under each core: [R]."""
        distinct, index = distinct_rows([cores.pp, cores.num_microbatches, cores.dp])
        sizes = [
            len(self._schedule_table(pp, count, dp)) * len(self._sharding_table(dp, pp)) * len(self.relief_codes)
            for pp, count, dp in distinct.tolist()
        ]
        return np.array(sizes, dtype=np.int64)[index]

    def _expand(
        self,
        rows: StrategyRows,
        key: Ints,
        by: tuple[str, ...],
        table_of: Callable[..., Ints],
        names: tuple[str, ...],
    ) -> tuple[StrategyRows, Ints]:
        """Cross every row with the table of its group; ``names`` are the columns that the table fills."""
        distinct, index = distinct_rows([getattr(rows, name) for name in by] or [np.zeros(len(rows), dtype=np.int64)])
        tables = [table_of(*values[: len(by)]) for values in distinct.tolist()]
        # Columns are written once, when all groups are known: where each row comes from, and its entry of all tables.
        source, entry, before = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], 0
        for position, table in enumerate(tables):
            here, entries = np.flatnonzero(index == position), np.arange(before, before + len(table))
            source.append(np.repeat(here, len(entries)))
            entry.append(np.tile(entries, len(here)))
            before += len(table)
        at, chosen = np.concatenate(source), np.concatenate(entry)
        if len(at) == 0:
            return self._empty(), at
        filled = dict(zip(names, np.concatenate(tables)[chosen].T.copy(), strict=True))
        return replace(rows.take(at), **filled), key[at]

    def leaves_of_layouts(self, layouts: StrategyRows) -> int:
        """Declared strategies under some layouts."""
        distinct, index = distinct_rows([layouts.dp, layouts.pp])
        sizes = np.array([len(self._sharding_table(dp, pp)) for dp, pp in distinct.tolist()], dtype=np.int64)
        return int(sizes[index].sum()) * len(self.relief_codes)

    def _legal(
        self,
        rows: StrategyRows,
        key: Ints,
        rules: Sequence[LegalityRule],
        strategies_of: Callable[[StrategyRows, Ints], int],
    ) -> tuple[StrategyRows, Ints]:
        """Rows that keep the rules; the strategies under the others are counted as illegal."""
        for rule in rules:
            broken = rule.broken(rows, self.shape)
            if broken.any():
                self.illegal[rule.reason] += strategies_of(rows.take(broken), key[broken])
                rows, key = rows.take(~broken), key[~broken]
        return rows, key

    def _grids(self) -> list[tuple[int, int, int, int, int, int]]:
        """(tp, cp, pp, dp, ep, etp) whose product fills the devices; hopeless degrees are counted and dropped."""
        shape, found = self.shape, []
        for tp in self._degrees("tp", shape.num_devices, self._tp_allowed):
            for cp in self._degrees("cp", shape.num_devices // tp, self._cp_allowed):
                for pp in self._degrees("pp", shape.num_devices // (tp * cp), self._pp_allowed):
                    dp = shape.num_devices // (tp * cp * pp)
                    if self._off("dp", dp):
                        self.pruned["pinned or forbidden"] += 1
                    elif shape.global_batch_size % dp != 0:
                        self.pruned["global_batch"] += 1
                    else:
                        grids = [(tp, cp, pp, dp, ep, etp) for ep, etp in self._expert_degrees(tp, cp, dp)]
                        kept = [grid for grid in grids if self._together(*grid[:3], grid[4])]
                        self.pruned["axes"] += len(grids) - len(kept)
                        found += kept
        return found

    def _together(self, tp: int, cp: int, pp: int, ep: int) -> bool:
        """Whether the back-end runs these axes in one strategy."""
        on = {name for name, degree in (("tp", tp), ("cp", cp), ("pp", pp), ("ep", ep)) if degree > 1}
        return not any(one in on and other in on for one, other in self.columns.apart)

    def _degrees(self, name: str, limit: int, allowed: Callable[[int], bool]) -> list[int]:
        values = [degree for degree in divisors(limit) if not self._off(name, degree)]
        self.pruned["pinned or forbidden"] += len(divisors(limit)) - len(values)
        kept = [degree for degree in values if allowed(degree)]
        self.pruned[{"tp": "heads", "cp": "sequence", "pp": "layers"}[name]] += len(values) - len(kept)
        return kept

    def _tp_allowed(self, tp: int) -> bool:
        shape = self.shape
        if tp > 1 and not self.columns.tensor_parallel:
            return False
        widths = all(width % tp == 0 for width in (*shape.heads, *shape.intermediate_sizes))
        repeats = self.columns.repeated_kv_heads
        return widths and all(kv % tp == 0 or (repeats and tp % kv == 0) for kv in shape.kv_heads)

    def _cp_allowed(self, cp: int) -> bool:
        return self.shape.sequence_length % cp == 0 and (cp == 1 or bool(self._context_kinds))

    def _pp_allowed(self, pp: int) -> bool:
        return pp <= self.shape.most_chunks and (pp == 1 or self.columns.pipeline_parallel)

    def _expert_degrees(self, tp: int, cp: int, dp: int) -> list[tuple[int, int]]:
        if not self.shape.is_moe:
            return [] if self._off("ep", 1) or self._off("etp", 1) else [(1, 1)]
        eps = divisors(min(self.shape.experts)) if self.columns.expert_parallel else [1]
        pairs = [(ep, etp) for ep in eps for etp in self._expert_tensor_degrees(tp, ep)]
        return [
            (ep, etp)
            for ep, etp in pairs
            if (tp * cp * dp) % (ep * etp) == 0 and not self._off("ep", ep) and not self._off("etp", etp)
        ]

    def _expert_tensor_degrees(self, tp: int, ep: int) -> list[int]:
        columns = self.columns
        if not columns.expert_tensor_parallel:
            return [1]
        if columns.expert_tensor == "any":
            return divisors(tp)
        return [tp if columns.expert_tensor == "tp" or ep == 1 else 1]

    def _with_batch(self, grids: list[tuple[int, int, int, int, int, int]]) -> Ints:
        """Micro-batch sizes and switches of every grid, under ``CORE_COLUMNS``: [C, R]."""
        codes = {experts: self._dispatcher_code(*experts) for experts in {grid[4:] for grid in grids}}
        tables, number, which = [np.zeros((6, 0), dtype=np.int64)], dict[tuple[int, ...], int](), list[int]()
        for tp, cp, _, dp, ep, etp in grids:
            key = dp, int(tp > 1), min(cp, 2), int(ep > 1)
            if key not in number:
                number[key] = len(tables)
                tables.append(self._batch_table(self.shape.global_batch_size // dp, tp > 1, cp, ep > 1))
            which.append(0 if codes[ep, etp] is None else number[key])
        sizes = np.array([table.shape[1] for table in tables])
        counts, before = sizes[which], (np.cumsum(sizes) - sizes)[which]
        self.pruned["pinned or forbidden"] += int((counts == 0).sum())
        # Columns are written once, when all tables are known: which entry of them each row takes (clip: no copy).
        entry = np.repeat(before - (np.cumsum(counts) - counts), counts)
        entry += np.arange(len(entry))
        columns = np.empty((len(CORE_COLUMNS), len(entry)), dtype=np.int64)
        of_grids = np.array([(*grid, codes[grid[4:]] or 0) for grid in grids], dtype=np.int64).reshape(-1, 7).T
        for column, value in zip((*range(6), len(columns) - 1), of_grids, strict=True):
            columns[column] = np.repeat(value, counts)
        for column, value in enumerate(np.concatenate(tables, axis=1), start=6):
            np.take(value, entry, out=columns[column], mode="clip")
        return columns

    def _batch_table(self, per_replica: int, has_tp: bool, cp: int, has_ep: bool) -> Ints:
        """(micro_batch_size, num_microbatches, sp, ring, overlap_tp, overlap_ep) choices: [6, R]."""
        rows = [
            (size, per_replica // size, sp, ring, overlap_tp, overlap_ep)
            for size in divisors(per_replica)
            if not self._off("micro_batch_size", size) and not self._off("num_microbatches", per_replica // size)
            for sp in self._sp_codes(has_tp)
            for overlap_tp in self._overlap_tp_codes(sp)
            for ring in self._cp_codes(cp)
            for overlap_ep in self._overlap_ep_codes(has_ep)
        ]
        return np.array(rows, dtype=np.int64).reshape(-1, 6).T

    def _off(self, name: str, value: int | str) -> bool:
        return self.pins.get(name, value) != value

    def _sp_codes(self, has_tp: bool) -> list[int]:
        allowed = [int(value) for value in self.columns.sequence_parallel]
        codes = [0] if not has_tp else [code for code in allowed if code or not self.shape.is_moe]
        return [code for code in codes if not self._off("sp", code)]

    def _cp_codes(self, cp: int) -> list[int]:
        if cp == 1:
            return [] if self._off("cp_kind", "none") else [0]
        return [int(kind == "ring") for kind in self._context_kinds if not self._off("cp_kind", kind)]

    def _overlap_tp_codes(self, sp: int) -> list[int]:
        if "overlap_tp" in self.pins:
            return [int(self.pins["overlap_tp"])]
        overlaps = bool(sp) and self.columns.overlap_tp
        return [1, 0] if overlaps and self.columns.overlap_tp_off else [int(overlaps)]

    def _overlap_ep_codes(self, has_ep: bool) -> list[int]:
        pinned = self.pins.get("overlap_ep")
        values = self.columns.overlap_ep if pinned is None else (bool(pinned),)
        return [int(value) for value in values] if has_ep else [0]

    def _dispatcher_code(self, ep: int, etp: int) -> int | None:
        """The one dispatcher of these degrees: pinned, or the back-end's own; None where it has no such."""
        if ep == 1:
            return 0
        pinned = self.pins.get("dispatcher")
        if pinned is None:
            return DISPATCHERS.index(self._rules.dispatcher(ep, etp))
        return next((DISPATCHERS.index(word) for word in self.columns.dispatchers if word == pinned), None)

    def _schedule_table(self, pp: int, count: int, dp: int) -> Ints:
        """(schedule, vpp, group, pp_inner) choices for ``count`` micro-batches: [C, 4]."""
        ordered = pp > 1 and dp > 1
        cached = self._tables.get((0, pp, count, int(ordered)))
        if cached is not None:
            return cached
        orders = self.columns.axis_orders if ordered else (0,)
        orders = tuple(order for order in orders if self._order_allowed(order))
        choices = [
            (SCHEDULE_NAMES.index(name), vpp, group, order)
            for name in (self.columns.schedules if pp > 1 else _NO_PIPELINE)
            if not self._off("schedule", name)
            for vpp, group in chunk_choices(self.columns, name, pp, count, self.shape.num_layers)
            if not (self.pins and (self._off("vpp", vpp) or self._off("microbatch_group_size", group)))
            for order in orders
        ]
        table = np.array(choices, dtype=np.int64).reshape(-1, len(SCHEDULE_COLUMNS))
        self._tables[(0, pp, count, int(ordered))] = table
        return table

    def _order_allowed(self, order: int) -> bool:
        return not self._off("axis_order", "tp-cp-ep-pp-dp" if order else "tp-cp-ep-dp-pp")

    def _zero_stages(self, pp: int) -> list[int]:
        stages = self.columns.zero_stages_with_pipeline if pp > 1 else self.columns.zero_stages
        return [stage for stage in stages if self.pins.get("zero_stage", stage) == stage]

    @cached_property
    def relief_codes(self) -> list[int]:
        """Memory reliefs that the pins and the back-end allow, as positions in ``reliefs``."""
        # A relief where it is needed may be needed nowhere.
        words = (self.problem.constraints.pins.get(name, "") for name in OF_RELIEF)
        codes = [0] if any(str(word).endswith(WHERE_NEEDED) for word in words) else []
        # A back-end that recomputes every layer or none has no plan with a number of them.
        numbered = isinstance(relief_layers(self.problem.constraints.pins), int) and self.columns.whole_recompute
        for code, relief in enumerate(self.reliefs):
            if code in codes:
                continue
            if relief.offload and (not self.columns.activation_offload or self.pins.get("activation_offload") is False):
                continue
            if self.pins.get("activation_offload") is True and not relief.offload:
                continue
            if relief.recompute not in self.columns.recompute or (numbered and relief.recompute == "full"):
                continue
            if self.pins.get("recompute", relief.recompute) == relief.recompute:
                codes.append(code)
        return codes

    @property
    def offloads(self) -> list[int]:
        """Optimizer offload choices that the pins and the back-end allow."""
        allowed = [0, 1] if self.columns.optimizer_offload else [0]
        pinned = self.pins.get("optimizer_offload")
        return [value for value in allowed if pinned is None or value == int(pinned)]

    def _sharding_table(self, dp: int, pp: int) -> Ints:
        """``SHARDING_COLUMNS`` choices; only sharded optimizers are offloaded: [C, 6]."""
        cached = self._tables.get((1, pp, dp))
        if cached is None:
            rows = [
                (replicate, zero, offload, reduces, gathers, self._fp8_parameters(zero, offload))
                for zero in self._zero_stages(pp)
                for replicate in (divisors(dp) if self._hybrid(zero) else [1])
                if not self._off("dp_replicate", replicate) and not self._off("dp_shard", dp // replicate)
                for offload in self.offloads
                if zero or not offload
                for reduces, gathers in self._overlap_data(pp)
                if self.columns.fp8_parameters or not self.pins.get("fp8_parameters")
            ]
            cached = np.array(rows, dtype=np.int64).reshape(-1, len(SHARDING_COLUMNS))
            self._tables[(1, pp, dp)] = cached
        return cached

    def _fp8_parameters(self, zero: int, offload: int) -> int:
        """Whether weights are stored in 8 bit: pinned, or wherever the back-end can, which is never more or slower."""
        pinned = self.pins.get("fp8_parameters")
        if pinned is not None or not self.columns.fp8_parameters:
            return int(pinned or False)
        return int(fp8_parameters_problem(self.problem.workload, zero, optimizer_offload=offload > 0) is None)

    def _hybrid(self, zero: int) -> bool:
        return self.columns.hybrid_sharding and zero in self.columns.hybrid_zero_stages

    def _overlap_data(self, pp: int) -> list[tuple[int, int]]:
        """(overlap_grad_reduce, overlap_param_gather) choices; a pin replaces what the back-end would take."""
        possible = pp == 1 or self.columns.overlap_grad_with_pipeline
        pairs = {
            (
                int(self.pins.get("overlap_grad_reduce", reduces and possible)),
                int(self.pins.get("overlap_param_gather", gathers)),
            )
            for reduces, gathers in self.columns.overlap_data
        }
        return sorted((pair for pair in pairs if possible or not pair[0]), reverse=True)

    def _relief_table(self) -> Ints:
        """Memory reliefs: [C, 1]."""
        return np.array(self.relief_codes, dtype=np.int64).reshape(-1, 1)

    def _empty(self) -> StrategyRows:
        return StrategyRows(*(np.zeros(0, dtype=np.int64) for _ in fields(StrategyRows)))
