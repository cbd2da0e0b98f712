"""The strategies that torchtitan 0.3.0 refuses, or fails on later: small functions over a ``RuleInput``.

Letters: M the model itself (``model_rules``), G batch, T tensor and sequence parallelism, C context parallelism,
E experts, P pipeline, Z data parallelism, R recompute and offload, O overlap, L layout of the stages; V only in the
TOML release (``toml_rules``).  Rules marked *not checked* are accepted by its configuration and fail, or run something
else, later.

Overlap is what FSDP2, torch's pipelines and the standard dispatcher do; no file says it, so a strategy must.
"""

from __future__ import annotations

from dataclasses import replace

from planner.backends.backend import Space
from planner.backends.rules.columns import Columns
from planner.backends.rules.divisibility import exact_batch, experts_divide, sequence_parallel
from planner.backends.rules.overlap import FSDP2, expert_overlap, fsdp2_overlap, fsdp2_spelling, plain_spelling
from planner.backends.rules.pipeline import (
    chunks_a_rank,
    empty_chunk,
    end_problem,
    microbatches,
    placement_problem,
    uneven_rounds,
)
from planner.backends.rules.rule import RuleInput, RuleTable, SpaceRule, mixtures, used_kinds
from planner.backends.torchtitan.degrees import (
    RECOMPUTE,
    SCHEDULES,
    SELECTIVE_MODULES,
    SPLIT_BACKWARD_SCHEDULES,
    expert_tensor_degree,
    group_size,
    replicate_degree,
    shard_degree,
)
from planner.backends.torchtitan.model_rules import MODEL_RULES
from planner.backends.torchtitan.toml_rules import TOML_MODEL_RULES, TOML_RULES
from planner.strategy.schedules import GROUPED_SCHEDULES
from planner.strategy.strategy import Strategy

MASK_BLOCK_TOKENS = 128
"""torch 2.13.0 nn/attention/flex_attention.py: _DEFAULT_SPARSE_BLOCK_SIZE."""
_TITAN = "torchtitan 0.3.0"
_SCHEDULES = "torch 2.13.0 distributed/pipelining/schedules.py"
_SPLIT_BACKWARD = (
    "github.com/pytorch/pytorch issue 161904 and pull request 162511, github.com/pytorch/torchtitan issue 3584, not"
    " checked: torch's check sees wrapped stages, and layers are compiled in place"
)


def _heads(given: RuleInput) -> str | None:
    tp = given.strategy.tp
    for kind in used_kinds(given.model):
        attention = kind.attention
        names = [(attention.num_heads, "attention")]
        # Latent attention has no key-value heads of its own.
        names += [(attention.num_kv_heads, "key-value")] if attention.kind == "gqa" else []
        for count, name in names:
            if count % tp:
                return f"{count} {name} heads do not divide over tp={tp}"
    return None


def _widths(given: RuleInput) -> str | None:
    s = given.strategy
    for kind in used_kinds(given.model):
        if kind.mlp and kind.mlp.intermediate_size % s.tp:
            return f"MLP width {kind.mlp.intermediate_size} does not divide over tp={s.tp}"
        if kind.moe and kind.moe.shared_intermediate_size % s.tp:
            return f"shared expert width {kind.moe.shared_intermediate_size} does not divide over tp={s.tp}"
        if kind.moe and s.ep == 1 and kind.moe.expert_intermediate_size % s.tp:
            return f"expert width {kind.moe.expert_intermediate_size} does not divide over tp={s.tp} (ep=1)"
    return None


def _tensor_overlap(given: RuleInput) -> str | None:
    s = given.strategy
    return "overlap_tp needs sp and tp > 1" if s.overlap_tp and not (s.sp and s.tp > 1) else None


def _sequence_divides(given: RuleInput) -> str | None:
    s, tokens = given.strategy, given.workload.sequence_length
    parts = (s.tp if s.sp else 1) * (2 * s.cp if s.cp > 1 else 1)
    if tokens % parts:
        return f"sequence length {tokens} does not divide into {parts} parts (tp{' x 2 cp' if s.cp > 1 else ''})"
    return None


def _whole_blocks(given: RuleInput) -> str | None:
    """Its attention is flex attention, whose masks torch cuts over context ranks in whole blocks."""
    s, tokens = given.strategy, given.workload.sequence_length
    if s.cp > 1 and tokens % (s.cp * MASK_BLOCK_TOKENS):
        return (
            f"context parallelism cuts masks in blocks of {MASK_BLOCK_TOKENS} tokens: {tokens} tokens are no whole"
            f" number of blocks on each of cp={s.cp} ranks"
        )
    return None


def _router_tokens(given: RuleInput) -> str | None:
    s, tokens = given.strategy, given.workload.sequence_length
    if s.ep > 1 and not s.sp and tokens // s.cp % s.tp:
        return f"with ep, tokens are dealt over tp even without sp: {tokens // s.cp} do not divide over tp={s.tp}"
    return None


def _context_kind(given: RuleInput) -> str | None:
    s = given.strategy
    wanted = "ring" if s.cp > 1 else "none"
    return f"cp={s.cp} is cp_kind {wanted}, not {s.cp_kind}" if s.cp_kind != wanted else None


def _expert_grid(given: RuleInput) -> str | None:
    s = given.strategy
    block = shard_degree(s) * s.cp * s.tp
    return f"ep={s.ep} does not divide dp_shard x cp x tp = {block}" if block % s.ep else None


def _expert_tensor(given: RuleInput) -> str | None:
    s = given.strategy
    wanted = expert_tensor_degree(s.tp, s.ep, experts=bool(mixtures(given.model)))
    return f"experts have etp={wanted} with tp={s.tp} and ep={s.ep}, not {s.etp}" if s.etp != wanted else None


def _expert_shards(given: RuleInput) -> str | None:
    """FSDP splits experts by number, or within each one where there are too few of them; then only evenly."""
    s = given.strategy
    shards = shard_degree(s) * s.cp
    replicas = replicate_degree(s) if s.ep == 1 else 1
    split = s.tp if s.ep == 1 else 1
    if s.ep > 1:
        shards = shards * s.tp // s.ep
    for moe in mixtures(given.model):
        if shards * s.ep * replicas <= moe.num_experts:
            continue
        for size, part in ((moe.expert_intermediate_size, split * shards), (given.model.hidden_size, shards)):
            if size % part:
                return (
                    f"{moe.num_experts} experts over {shards} shards x ep={s.ep} are split within each expert, and"
                    f" its size {size} does not divide by {part}"
                )
    return None


def _schedule(given: RuleInput) -> str | None:
    s = given.strategy
    if s.schedule not in SCHEDULES:
        return f"torch has no schedule {s.schedule}; there are {', '.join(sorted(SCHEDULES))}"
    return f"schedule {s.schedule} needs pp > 1" if s.pp == 1 and s.schedule != "1f1b" else None


def _split_backward(given: RuleInput) -> str | None:
    """The input's pass keeps the graph for the weights' pass; a compiled backward gives its saved buffers away.

    Two gloo ranks of torch 2.13.0 fail at the first step, in ``stage_backward_input``, with compiled layers and with a
    compiled loss alone (tests/oracle/test_split_backward_compiled.py has the reason in one process).
    """
    name = given.strategy.schedule
    if name not in SPLIT_BACKWARD_SCHEDULES:
        return None
    return f"{name} splits backward passes, which fails on compiled layers and loss; use interleaved or 1f1b"


def _microbatch_rounds(given: RuleInput) -> str | None:
    s = given.strategy
    uneven = uneven_rounds(given) if s.pp > 1 and s.schedule in GROUPED_SCHEDULES else None
    if uneven is not None:
        return uneven
    group = group_size(s)
    if s.microbatch_group_size != group:
        return f"torch derives a micro-batch group of {group}, not {s.microbatch_group_size}"
    return None


def _tied(given: RuleInput) -> str | None:
    if given.model.tie_embeddings and given.strategy.pp > 1:
        return "tied embedding and head need pp = 1"
    return None


def _zero_stages(given: RuleInput) -> str | None:
    s = given.strategy
    if s.pp == 1:
        return "FSDP2 without a pipeline scatters gradients too: zero_stage 2, not 1" if s.zero_stage == 1 else None
    if s.zero_stage > 1:
        return f"zero_stage {s.zero_stage} with pp > 1: torch's stages keep whole gradients, which is zero_stage 1"
    return None


def _plain_data_parallel(given: RuleInput) -> str | None:
    s = given.strategy
    if s.zero_stage:
        return None
    if s.cp > 1:
        return "context parallelism always shards parameters over its ranks: zero_stage must not be 0 with cp > 1"
    return f"zero_stage 0 has no dp_replicate: dp_shard={s.dp}, not {s.dp_shard}" if s.dp_replicate > 1 else None


def _recompute_policy(given: RuleInput) -> str | None:
    s = given.strategy
    if s.recompute == "selective" and s.recompute_modules != SELECTIVE_MODULES:
        return f"selective recompute of {', '.join(s.recompute_modules) or 'nothing'}; torchtitan's is that of" + (
            f" {', '.join(SELECTIVE_MODULES)}"
        )
    if s.recompute not in RECOMPUTE or (s.recompute != "selective" and s.recompute_modules):
        return f"recompute {s.recompute} has no modules"
    return None


def _every_layer(given: RuleInput) -> str | None:
    s = given.strategy
    for stage in given.layout or ():
        layers = tuple(chunk.num_layers for chunk in stage.chunks)
        policy = s.recompute if any(layers) else "none"
        if stage.recompute.policy != policy or (policy != "none" and stage.recompute.num_layers_per_chunk != layers):
            return f"stage {stage.stage}: recompute {s.recompute} covers every layer of every stage, or none"
    return None


def _offload(given: RuleInput) -> str | None:
    s, stages = given.strategy, given.layout or ()
    if s.optimizer_offload or any(stage.offload.optimizer for stage in stages):
        return "enable_cpu_offload moves parameters and gradients to the host too, not only optimizer states"
    if s.activation_offload or any(stage.offload.activation_layers for stage in stages):
        return "activations cannot be offloaded"
    return None


def _placement(given: RuleInput) -> str | None:
    return placement_problem(given, of_chunk=end_problem)


def _order(given: RuleInput) -> str | None:
    s = given.strategy
    wrong = s.axis_order != "tp-cp-ep-dp-pp" and s.pp > 1 and s.dp > 1
    return "stages are the outermost axis: axis_order must be tp-cp-ep-dp-pp" if wrong else None


STRATEGY_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("G1", f"{_TITAN} trainer.py:422", exact_batch(), ("micro_batch_size", "num_microbatches", "dp")),
    SpaceRule("G2", f"{_TITAN} distributed/parallel_dims.py:284-335", _order, ("axis_order",)),
    SpaceRule("T1", f"{_TITAN} models/common/decoder.py:147-160", _heads, ("tp",)),
    SpaceRule("T2", f"{_TITAN} models/common/decoder_sharding.py, not checked: uneven shards", _widths, ("tp", "ep")),
    SpaceRule("T3", f"{_TITAN} config/configs.py:160, not checked: no effect", sequence_parallel, ("sp", "tp")),
    SpaceRule(
        "T4",
        f"{_TITAN} config/configs.py:303 and distributed/compile.py:72",
        _tensor_overlap,
        ("overlap_tp", "sp", "tp"),
    ),
    SpaceRule("C1", f"{_TITAN} trainer.py:307", _sequence_divides, ("cp", "tp", "sp")),
    SpaceRule("C2", f"{_TITAN} distributed/context_parallel/api.py:82", _context_kind, ("cp_kind", "cp")),
    SpaceRule(
        "C3", f"{_TITAN} models/common/moe_sharding.py:89, not checked", _router_tokens, ("ep", "tp", "sp", "cp")
    ),
    SpaceRule(
        "C4",
        "torch 2.13.0 distributed/tensor/experimental/_context_parallel/_attention.py:1224, not checked: fails at the"
        " first step",
        _whole_blocks,
        ("cp",),
    ),
    SpaceRule("E1", f"{_TITAN} models/common/moe_sharding.py:29, not checked: uneven experts", experts_divide, ("ep",)),
    SpaceRule(
        "E2",
        f"{_TITAN} config/configs.py:279, not checked before the mesh is built",
        _expert_grid,
        ("ep", "dp_shard", "cp", "tp", "zero_stage"),
    ),
    SpaceRule("E3", f"{_TITAN} models/common/moe_sharding.py:29 and 50", _expert_tensor, ("etp", "tp", "ep")),
    SpaceRule(
        "E4",
        f"{_TITAN} distributed/fsdp.py:230; torch 2.13.0 fully_shard: even shards",
        _expert_shards,
        ("dp_shard", "ep", "cp", "tp"),
    ),
    SpaceRule("P1", f"{_SCHEDULES}:3620", _schedule, ("schedule", "pp")),
    SpaceRule(
        "P2",
        f"{_TITAN} distributed/pipeline_parallel.py:571; :341, not checked: parts dropped",
        chunks_a_rank,
        ("vpp", "schedule", "pp"),
    ),
    SpaceRule(
        "P3",
        f"{_SCHEDULES}:1021 (1F1B), :3440 (DualPipeV)",
        microbatches,
        ("num_microbatches", "micro_batch_size", "pp", "schedule"),
    ),
    SpaceRule(
        "P4",
        f"{_SCHEDULES}:2935-2941, :3046-3052",
        _microbatch_rounds,
        ("microbatch_group_size", "num_microbatches", "pp", "schedule"),
    ),
    SpaceRule("P5", f"{_TITAN} models/common/decoder.py:138", _tied, ("pp",)),
    SpaceRule("P6", _SPLIT_BACKWARD, _split_backward, ("schedule",)),
    SpaceRule(
        "Z1",
        "torch 2.13.0 distributed/pipelining/stage.py: backward_maybe_with_nosync",
        _zero_stages,
        ("zero_stage", "pp"),
    ),
    SpaceRule(
        "Z2", f"{_TITAN} distributed/parallel_dims.py:278", _plain_data_parallel, ("zero_stage", "cp", "dp_replicate")
    ),
    SpaceRule(
        "R1",
        f"{_TITAN} distributed/activation_checkpoint.py:185",
        _recompute_policy,
        ("recompute_modules", "recompute"),
    ),
    SpaceRule("R2", f"{_TITAN} distributed/activation_checkpoint.py:152", _every_layer, ("recompute",)),
    SpaceRule("R3", f"{_TITAN} config/configs.py:61", _offload, ("optimizer_offload", "activation_offload")),
    SpaceRule("O1", FSDP2, fsdp2_overlap, ("overlap_grad_reduce", "overlap_param_gather", "pp")),
    SpaceRule(
        "O2", f"{_TITAN} distributed/expert_parallel.py: the standard dispatcher", expert_overlap, ("overlap_ep", "ep")
    ),
    SpaceRule("L1", f"{_TITAN} distributed/pipeline_parallel.py:581, not checked", _placement, ("pp", "vpp")),
    SpaceRule(
        "L2", f"{_TITAN} distributed/pipeline_parallel.py:581, not checked: an empty stage", empty_chunk, ("pp", "vpp")
    ),
)

TABLE = RuleTable("torchtitan", MODEL_RULES, STRATEGY_RULES)
violations = TABLE.violations


def spelled(s: Strategy, given: RuleInput) -> Strategy:
    """One spelling for switches that mean nothing beside the others, as the files give them back."""
    changes = plain_spelling(s) | fsdp2_spelling(s, given)
    if s.pp == 1:
        changes |= {"schedule": "1f1b", "microbatch_group_size": 0}
    if s.zero_stage == 0:
        changes |= {"dp_replicate": 1, "dp_shard": s.dp}
    return replace(s, **changes)


_COLUMNS = Columns(
    # Not those that split backward passes (rule P6).
    schedules=("1f1b", "gpipe", "interleaved", "looped_bfs"),
    derived_group=True,
    repeated_kv_heads=False,
    cp_kinds=("ring",),
    zero_stages=(0, 2, 3),
    zero_stages_with_pipeline=(0, 1),
    axis_orders=(0,),
    expert_tensor="tp without ep",
    optimizer_offload=False,
    activation_offload=False,
    overlap_ep=(False,),
    overlap_grad_with_pipeline=False,
    selective_modules=SELECTIVE_MODULES,
    uniform_recompute=True,
    whole_recompute=True,
)
SPACE = Space(_COLUMNS, TABLE, spelled)
TOML_TABLE = RuleTable("torchtitan", (*MODEL_RULES, *TOML_MODEL_RULES), (*STRATEGY_RULES, *TOML_RULES))
TOML_SPACE = Space(replace(_COLUMNS, sequence_parallel=(True,)), TOML_TABLE, spelled)
