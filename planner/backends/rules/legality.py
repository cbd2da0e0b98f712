"""The strategies that make sense at all, whatever the back-end.

Each ``LegalityRule`` marks the rows that break it.  The same rules prune the search (counted by reason) and check a
single strategy given by hand (all broken rules at once).  Rules of a back-end live with its emitter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.model.spec import ModelSpec
from planner.question.problem import Workload
from planner.strategy.rows import StrategyRows, scheduled_as, v_placed
from planner.strategy.schedules import GROUPED_SCHEDULES, LOOPED_SCHEDULES
from solver.arrays import Mask

EMPTY_ENDS = 2
"""Chunks that may hold no layer: the first, with the embedding, and the last, with the head."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """The numbers of a model that legality depends on."""

    num_layers: int
    heads: tuple[int, ...]
    kv_heads: tuple[int, ...]
    intermediate_sizes: tuple[int, ...]
    expert_intermediate_sizes: tuple[int, ...]
    experts: tuple[int, ...]
    sequence_length: int
    global_batch_size: int
    num_devices: int
    empty_ends: bool = False
    has_encoder: bool = False
    has_denoiser: bool = False
    is_traced: bool = False

    @property
    def most_chunks(self) -> int:
        """Chunks that a pipeline may have: each holds a layer, the ends none where the back-end lets them be empty."""
        return self.num_layers + EMPTY_ENDS * self.empty_ends

    @property
    def is_moe(self) -> bool:
        """Whether any layer has experts."""
        return bool(self.experts)


def model_shape(model: ModelSpec, workload: Workload, num_devices: int, *, empty_ends: bool = False) -> ModelShape:
    """Collect the shape once for all rules; ``empty_ends`` as the back-end's ``Columns`` say."""
    kinds = model.layer_kinds
    moes = [kind.moe for kind in kinds if kind.moe is not None]
    widths = [kind.mlp.intermediate_size for kind in kinds if kind.mlp is not None]
    widths += [moe.shared_intermediate_size for moe in moes if moe.shared_intermediate_size]
    mixed = [mixer for kind in kinds for mixer in (kind.attention, kind.beside, kind.cross) if mixer is not None]
    others = {mixer.num_kv_heads for mixer in mixed if mixer.kind not in ("gqa", "mla", "cross")}
    towers = [run.layer.attention.num_heads for tower in model.towers for run in tower.runs]
    return ModelShape(
        num_layers=model.num_layers,
        heads=tuple(sorted(({mixer.num_heads for mixer in mixed} | others | set(towers)) - {0})),
        kv_heads=tuple(sorted({mixer.num_kv_heads for mixer in mixed if mixer.kind in ("gqa", "cross")})),
        intermediate_sizes=tuple(sorted(set(widths))),
        expert_intermediate_sizes=tuple(sorted({moe.expert_intermediate_size for moe in moes})),
        experts=tuple(sorted({moe.num_experts for moe in moes})),
        sequence_length=workload.sequence_length,
        global_batch_size=workload.global_batch_size,
        num_devices=num_devices,
        empty_ends=empty_ends,
        has_encoder=model.encoder is not None or model.crossed_modality is not None,
        has_denoiser=model.denoiser is not None,
        is_traced=model.traced is not None,
    )


@dataclass(frozen=True, slots=True)
class LegalityRule:
    """``broken(rows, shape)`` marks rows that violate the rule named ``reason``.

    ``places``: the fields that it is about, the first to blame first; a flag for what is no field of a strategy.
    """

    reason: str
    message: str
    places: tuple[str, ...]
    broken: Callable[[StrategyRows, ModelShape], Mask]


def _none(rows: StrategyRows) -> Mask:
    return np.zeros(len(rows), dtype=bool)


def _any_indivisible(values: Sequence[int], by: NDArray[np.int64], rows: StrategyRows) -> Mask:
    mask = _none(rows)
    for value in values:
        mask |= value % by != 0
    return mask


def _kv_heads(rows: StrategyRows, shape: ModelShape) -> Mask:
    mask = _none(rows)
    for kv in shape.kv_heads:
        mask |= (kv % rows.tp != 0) & (rows.tp % kv != 0)
    return mask


def _ulysses(rows: StrategyRows, shape: ModelShape) -> Mask:
    ways = rows.tp * rows.cp
    mask = _any_indivisible(shape.heads, ways, rows)
    for kv in shape.kv_heads:
        mask |= (kv % ways != 0) & (ways % kv != 0)
    broken: Mask = (rows.cp > 1) & (rows.ring == 0) & mask
    return broken


def _sequence(rows: StrategyRows, shape: ModelShape) -> Mask:
    pieces = np.where(rows.cp > 1, np.where(rows.ring > 0, 2 * rows.cp, rows.cp), 1) * np.where(rows.sp > 0, rows.tp, 1)
    broken: Mask = shape.sequence_length % pieces != 0
    return broken


def _interleaved(rows: StrategyRows, shape: ModelShape) -> Mask:
    group = np.maximum(rows.group, 1)
    rest = rows.num_microbatches % group
    bad = (rows.group < rows.pp) | (rows.group > rows.num_microbatches) | ((rest != 0) & (rest < rows.pp))
    loops = scheduled_as(rows, LOOPED_SCHEDULES) & ((rows.vpp < 2) | (rows.pp < 2))
    broken: Mask = loops | (scheduled_as(rows, GROUPED_SCHEDULES) & bad)
    return broken


def _chunks(rows: StrategyRows, shape: ModelShape) -> Mask:
    v_shaped = v_placed(rows)
    wrong = (v_shaped & (rows.vpp != 2)) | (scheduled_as(rows, ("1f1b", "gpipe", "zb_h1")) & (rows.vpp != 1))
    broken: Mask = wrong | (~scheduled_as(rows, ("1f1b",)) & (rows.pp < 2))
    return broken


def _expert_grid(rows: StrategyRows, shape: ModelShape) -> Mask:
    ways, parts = rows.tp * rows.cp * rows.dp, rows.etp * rows.ep
    broken: Mask = (ways % parts != 0) | (
        (rows.dp_replicate > 1) & ((ways // np.maximum(parts, 1)) % rows.dp_replicate != 0)
    )
    return broken if shape.is_moe else np.asarray(parts != 1)


RULES: tuple[LegalityRule, ...] = (
    LegalityRule(
        "world_size",
        "tp * cp * pp * dp must equal the number of devices",
        ("tp", "cp", "pp", "dp", "--devices"),
        lambda r, s: r.tp * r.cp * r.pp * r.dp != s.num_devices,
    ),
    LegalityRule(
        "global_batch",
        "global batch size must equal micro_batch_size * num_microbatches * dp",
        ("micro_batch_size", "num_microbatches", "dp", "--global-batch-size"),
        lambda r, s: r.micro_batch_size * r.num_microbatches * r.dp != s.global_batch_size,
    ),
    LegalityRule(
        "replicate",
        "dp_replicate must divide dp",
        ("dp_replicate", "dp_shard"),
        lambda r, s: r.dp % np.maximum(r.dp_replicate, 1) != 0,
    ),
    LegalityRule(
        "heads", "attention heads must be divisible by tp", ("tp",), lambda r, s: _any_indivisible(s.heads, r.tp, r)
    ),
    LegalityRule("kv_heads", "key/value heads must divide tp or be divisible by it", ("tp",), _kv_heads),
    LegalityRule(
        "intermediate_size",
        "the feed-forward width must be divisible by tp",
        ("tp",),
        lambda r, s: _any_indivisible(s.intermediate_sizes, r.tp, r),
    ),
    LegalityRule(
        "sequence",
        "the sequence must split evenly over 2*cp (ring) or cp, times tp under sp",
        ("cp", "cp_kind", "tp", "sp", "--sequence-length"),
        _sequence,
    ),
    LegalityRule(
        "ulysses_heads",
        "all_to_all context parallelism needs heads divisible by tp * cp",
        ("cp_kind", "cp", "tp"),
        _ulysses,
    ),
    LegalityRule(
        "sequence_parallel", "sequence parallelism needs tp > 1", ("sp", "tp"), lambda r, s: (r.sp > 0) & (r.tp == 1)
    ),
    LegalityRule(
        "moe_sequence_parallel",
        "experts with tp > 1 need sequence parallelism",
        ("sp", "tp"),
        lambda r, s: (r.tp > 1) & (r.sp == 0) if s.is_moe else _none(r),
    ),
    LegalityRule(
        "experts", "experts must be divisible by ep", ("ep",), lambda r, s: _any_indivisible(s.experts, r.ep, r)
    ),
    LegalityRule(
        "expert_width",
        "the expert width must be divisible by etp",
        ("etp",),
        lambda r, s: _any_indivisible(s.expert_intermediate_sizes, r.etp, r),
    ),
    LegalityRule(
        "expert_grid",
        "etp * ep must divide tp * cp * dp (and is 1 without experts)",
        ("ep", "etp", "tp", "cp", "dp"),
        _expert_grid,
    ),
    LegalityRule(
        "layers",
        "every model chunk needs at least one layer: pp * vpp <= layers",
        ("pp", "vpp"),
        lambda r, s: _none(r) if s.empty_ends else r.pp * r.vpp > s.most_chunks,
    ),
    LegalityRule(
        "inner_layers",
        "every model chunk but the first and the last needs at least one layer: pp * vpp <= layers + 2",
        ("pp", "vpp"),
        lambda r, s: r.pp * r.vpp > s.most_chunks if s.empty_ends else _none(r),
    ),
    LegalityRule(
        "chunks",
        "the schedule fixes vpp: 1 for 1f1b, gpipe, zb_h1; 2 for zbv, dualpipev; pp > 1",
        ("schedule", "vpp", "pp"),
        _chunks,
    ),
    LegalityRule(
        "interleaved",
        "interleaved, interleaved_zb and looped_bfs need vpp > 1; the first two pp <= group <= micro-batches, the last"
        " group 0 or >= pp",
        ("schedule", "vpp", "pp", "microbatch_group_size", "num_microbatches"),
        _interleaved,
    ),
    LegalityRule(
        "v_microbatches",
        "zbv and dualpipev need at least 2 * pp micro-batches",
        ("schedule", "pp", "num_microbatches", "micro_batch_size"),
        lambda r, s: v_placed(r) & (r.num_microbatches < 2 * r.pp),
    ),
    LegalityRule(
        "hsdp",
        "dp_replicate > 1 only means something from ZeRO-1 on",
        ("dp_replicate", "zero_stage"),
        lambda r, s: (r.dp_replicate > 1) & (r.zero == 0),
    ),
    LegalityRule(
        "optimizer_offload",
        "optimizer offload needs a sharded optimizer (ZeRO >= 1)",
        ("optimizer_offload", "zero_stage"),
        lambda r, s: (r.optimizer_offload > 0) & (r.zero == 0),
    ),
    LegalityRule(
        "encoder_pipeline",
        "layers that attend to another sequence are not cut into stages: they read the output of an encoder or a tower,"
        " and no back-end passes it on (Megatron-core 0.19 has no encoder stages any more)",
        ("pp", "vpp"),
        lambda r, s: (r.pp * r.vpp > 1) if s.has_encoder else _none(r),
    ),
    LegalityRule(
        "encoder_context",
        "context parallelism splits one sequence; a model whose layers attend to another one has two",
        ("cp",),
        lambda r, s: (r.cp > 1) if s.has_encoder else _none(r),
    ),
    LegalityRule(
        "denoiser_pipeline",
        "a diffusion transformer is not cut into stages: every layer reads the text and the time step",
        ("pp", "vpp"),
        lambda r, s: (r.pp * r.vpp > 1) if s.has_denoiser else _none(r),
    ),
    LegalityRule(
        "traced_layers",
        "a traced model is cut by layers and by samples only: nothing proves how tp, cp or ep may split its operators",
        ("tp", "cp", "ep"),
        lambda r, s: (r.tp * r.cp * r.ep * r.etp > 1) if s.is_traced else _none(r),
    ),
    LegalityRule(
        "axis_order",
        "the order with pp inside dp needs etp * ep = tp * cp when cp > 1 or ep > 1",
        ("axis_order", "cp", "ep", "etp", "tp"),
        lambda r, s: (r.pp_inner > 0) & ((r.cp > 1) | (r.ep > 1)) & (r.etp * r.ep != r.tp * r.cp),
    ),
)


def broken_rules(rows: StrategyRows, shape: ModelShape) -> list[tuple[LegalityRule, Mask]]:
    """Every rule with the rows that break it."""
    return [(rule, rule.broken(rows, shape)) for rule in RULES]
