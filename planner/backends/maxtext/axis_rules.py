"""The degrees that MaxText's mesh cannot hold: rules G, S, T, C, E and Z."""

from __future__ import annotations

import math

from planner.backends.maxtext.hardware import is_tpu
from planner.backends.maxtext.mesh_axes import axis_sizes, mesh_split
from planner.backends.maxtext.version import MAXTEXT_VERSION, TYPES
from planner.backends.rules.divisibility import context_kind, exact_batch, experts_divide, heads
from planner.backends.rules.packed_sequences import packed_context
from planner.backends.rules.rule import RuleInput, SpaceRule, latent, mixtures, used_kinds

_BASE = f"maxtext {MAXTEXT_VERSION} configs/base.yml"
_PJIT = "jax 0.10.2 pjit: a dimension of an array must divide over the mesh axes that shard it"


def _order(given: RuleInput) -> str | None:
    if given.strategy.axis_order != "tp-cp-ep-dp-pp":
        return "the stage axis is the outermost one: axis_order must be tp-cp-ep-dp-pp"
    return None


def _slices(given: RuleInput) -> str | None:
    s = given.strategy
    if not given.scale_up_devices or s.dp_shard % s.ep:
        return None
    if mesh_split(axis_sizes(s), given.scale_up_devices) is not None:
        return None
    sizes = ", ".join(f"{axis} {size}" for axis, size in axis_sizes(s).items() if size > 1)
    return (
        f"{s.world_size} devices in slices of {min(given.scale_up_devices, s.world_size)} cannot be laid out as"
        f" {sizes}: at most one axis may straddle slices, and every slice must be full"
    )


def _widths(given: RuleInput) -> str | None:
    s, model = given.strategy, given.model
    if model.vocab_size % s.tp:
        return f"a vocabulary of {model.vocab_size} does not divide over tp={s.tp}"
    if model.hidden_size % s.tp:
        return f"hidden size {model.hidden_size} does not divide over tp={s.tp}"
    for kind in used_kinds(model):
        widths = [kind.mlp.intermediate_size] if kind.mlp else []
        widths += [kind.moe.expert_intermediate_size, kind.moe.shared_intermediate_size] if kind.moe else []
        for width in widths:
            if width % s.tp:
                return f"an MLP width of {width} does not divide over tp={s.tp}"
    return None


def _sequence_parallel(given: RuleInput) -> str | None:
    s = given.strategy
    if s.sp == (s.tp > 1):
        return None
    return "sp needs tp > 1" if s.sp else "the tensor axis splits activations between layers: tp > 1 needs sp"


def _context_kind(given: RuleInput) -> str | None:
    contradiction = context_kind(given)
    if contradiction is None and given.strategy.cp_kind == "all_to_all" and not is_tpu(given.architecture):
        return "all-to-all context parallelism (ulysses) runs on TPU only; use ring"
    return contradiction


def _context_tokens(given: RuleInput) -> str | None:
    s, tokens = given.strategy, given.workload.sequence_length
    if s.cp == 1:
        return None
    if s.cp_kind == "all_to_all":
        return f"{tokens} tokens do not divide over cp={s.cp}" if tokens % s.cp else None
    parts = math.lcm(2 * s.cp, s.cp * s.cp) if is_tpu(given.architecture) else 2 * s.cp
    return f"{tokens} tokens do not divide into {parts} parts, which ring cp={s.cp} needs" if tokens % parts else None


def _context_attention(given: RuleInput) -> str | None:
    s = given.strategy
    if s.cp == 1:
        return None
    if given.workload.dropout and is_tpu(given.architecture):
        return "ring and ulysses attention on TPU run without dropout"
    windowed = any(kind.attention.sliding_window for kind in used_kinds(given.model))
    if windowed:
        return "ring and ulysses attention see all tokens; the model has windows"
    if s.cp_kind == "ring":
        if not is_tpu(given.architecture):
            return "latent attention with a ring is built for TPU only" if latent(given.model) else None
        if s.cp % 2:
            return f"a balanced ring needs an even cp, not {s.cp}"
        return "a balanced ring does not run multi-token prediction" if given.model.mtp else None
    if latent(given.model):
        return "ulysses attention does not run latent attention"
    for kind in used_kinds(given.model):
        for count in (kind.attention.num_heads, kind.attention.num_kv_heads):
            if count % (s.cp * s.tp):
                return f"ulysses: {count} heads do not divide over tp x cp = {s.cp * s.tp}"
    return None


def _packed_context(given: RuleInput) -> str | None:
    """On GPUs a ring is balanced already (``hardware.attention_keys``)."""
    if is_tpu(given.architecture) and given.strategy.cp_kind == "ring" and latent(given.model):
        return "a ring of latent attention takes no packed documents"
    return None


def _context_slices(given: RuleInput) -> str | None:
    s = given.strategy
    if s.cp_kind != "all_to_all" or not given.scale_up_devices or s.cp * s.tp <= given.scale_up_devices:
        return None
    return f"ulysses attention stays inside a slice; tp x cp = {s.cp * s.tp} leaves one of {given.scale_up_devices}"


def _expert_axis(given: RuleInput) -> str | None:
    s = given.strategy
    if s.dp_shard % s.ep:
        return f"the expert axis is a part of dp_shard, and ep={s.ep} does not divide dp_shard={s.dp_shard}"
    return None


def _expert_tensor(given: RuleInput) -> str | None:
    s = given.strategy
    wanted = s.tp if mixtures(given.model) else 1
    if s.etp == wanted:
        return None
    return f"the tensor axis splits experts too: etp must be {wanted}, not {s.etp}"


def _sharding(given: RuleInput) -> str | None:
    s = given.strategy
    if s.zero_stage == 2:
        return "gradients alone cannot be sharded: zero_stage is 0, 1 or 3"
    if s.zero_stage < 3 and s.cp * s.ep > 1:
        return "the context and expert axes shard the weights: cp or ep > 1 needs zero_stage 3"
    return None


def _replicas(given: RuleInput) -> str | None:
    s = given.strategy
    if s.zero_stage < 3 and s.dp_replicate > 1:
        return f"zero_stage {s.zero_stage} has one data axis: dp_replicate must be 1"
    if s.zero_stage == 3 and s.dp_shard * s.cp == 1:
        return "zero_stage 3 over one rank shards nothing: use 0"
    return None


def _accumulated_gradients(given: RuleInput) -> str | None:
    """With ``shard_optimizer_over_data`` the loop over micro-batches runs on bf16 copies of the weights.

    Gradients and their sum have the dtype of those copies, whatever ``grad_dtype`` says (executed on CPU devices: the
    norm of the gradients has eight significant bits, losses differ by 1e-3).  A pipeline has no such loop.
    """
    s, dtype = given.strategy, given.workload.gradient_dtype
    if s.zero_stage == 1 and s.pp == 1 and s.num_microbatches > 1 and dtype == "fp32":
        return (
            f"ZeRO-1 sums the gradients of {s.num_microbatches} micro-batches in bf16: use zero_stage 0 or 3, one"
            " micro-batch, or gradient_dtype bf16 in the workload"
        )
    return None


def _shards_divide(given: RuleInput) -> str | None:
    s, model = given.strategy, given.model
    shards = s.dp_shard * s.cp if s.zero_stage == 3 else 1
    if model.hidden_size % shards:
        return f"hidden size {model.hidden_size} does not divide over dp_shard x cp = {shards}"
    for kind in used_kinds(model):
        for rank in (kind.attention.q_lora_rank, kind.attention.kv_lora_rank):
            if rank and rank % shards:
                return f"a latent width of {rank} does not divide over dp_shard x cp = {shards}"
    return None


AXIS_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("G1", f"{TYPES}:4426-4455", exact_batch(), ("micro_batch_size", "num_microbatches", "dp")),
    SpaceRule("G2", f"{TYPES}:4612; {_BASE}:636", _order, ("axis_order",)),
    SpaceRule(
        "S1",
        f"maxtext {MAXTEXT_VERSION} utils/max_utils.py:462-485",
        _slices,
        ("dp_shard", "dp_replicate", "cp", "tp", "pp"),
    ),
    SpaceRule("T1", f"maxtext {MAXTEXT_VERSION} layers/attentions.py:630", heads, ("tp",)),
    SpaceRule("T2", f"{_BASE}:637 (vocab, mlp, norm); {_PJIT}", _widths, ("tp",)),
    SpaceRule("T3", f"{_BASE}:637 (activation_embed)", _sequence_parallel, ("sp", "tp")),
    SpaceRule("C1", f"{TYPES}:5190, :5254", _context_kind, ("cp_kind", "cp")),
    SpaceRule("C2", f"{TYPES}:5211, :5298", _context_tokens, ("cp", "cp_kind")),
    packed_context(f"{TYPES}:5224, layers/attention_op.py:2693", _packed_context),
    SpaceRule("C3", f"{TYPES}:5221-5246, :5277-5314", _context_attention, ("cp", "cp_kind", "tp")),
    SpaceRule("C4", f"{TYPES}:5267", _context_slices, ("cp_kind", "cp", "tp")),
    SpaceRule("E1", f"maxtext {MAXTEXT_VERSION} layers/moe.py:4480", experts_divide, ("ep",)),
    SpaceRule("E2", f"{_BASE}:637 (activation_batch, exp)", _expert_axis, ("ep", "dp_shard")),
    SpaceRule("E3", f"{_BASE}:637 (mlp_moe)", _expert_tensor, ("etp", "tp")),
    SpaceRule("Z1", f"{_BASE}:637 (embed), :799", _sharding, ("zero_stage", "cp", "ep")),
    SpaceRule("Z2", f"{TYPES}:5605-5625", _replicas, ("zero_stage", "dp_replicate", "dp_shard", "cp")),
    SpaceRule(
        "Z4",
        f"maxtext {MAXTEXT_VERSION} utils/gradient_accumulation.py:96-103, :169",
        _accumulated_gradients,
        ("zero_stage", "num_microbatches", "pp"),
    ),
    SpaceRule("Z3", f"{_BASE}:637 (embed, q_lora, kv_lora); {_PJIT}", _shards_divide, ("dp_shard", "cp", "zero_stage")),
)
