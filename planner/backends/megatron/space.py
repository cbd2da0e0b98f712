"""The strategies that Megatron-LM 0.19.2 refuses, or fails on later: small functions over a ``RuleInput``.

Letters: A ``validate_args``, B the config's ``__post_init__``, C process groups, D model build or first step, O the
optimizer's config, U enforced nowhere before the run (the planner must), P no flag says it, M the model itself
(``model_rules``).  Rules that the flags obey by construction (A1, A4-A7, A17, B4, B9, B10, D1) are
not repeated: dp is derived, uneven splits always use a layout, recompute flags are written as a set.

Everything here is integer arithmetic on a few fields, so that the search can ask it for every strategy.
"""

from __future__ import annotations

from collections.abc import Callable

from planner.backends.backend import Space
from planner.backends.megatron.dispatcher import dispatcher_problem, usual_dispatcher
from planner.backends.megatron.model_rules import MODEL_RULES
from planner.backends.megatron.optimizer_rules import ALL, dealt_to_all, emerging_fp16, layer_wise, precision_aware
from planner.backends.megatron.recompute import cannot_recompute
from planner.backends.megatron.spelling import spelled
from planner.backends.megatron.stage_rules import chunks_in_place, one_offload, one_recompute, some_layers_alone
from planner.backends.megatron.token_mixers import indexed_context, mixer_heads, pattern_chunks
from planner.backends.rules.columns import Columns
from planner.backends.rules.divisibility import (
    context_kind,
    context_parallel_sequence,
    experts_need_sequence_parallel,
    positions,
    sequence_parallel,
)
from planner.backends.rules.fp8_parameters import fp8_parameters
from planner.backends.rules.fp8_recipes import EVERY_RECIPE, fp8_recipes
from planner.backends.rules.optimizers import optimizers
from planner.backends.rules.packed_sequences import CONCATENATED, packed_context, packed_sequences
from planner.backends.rules.rule import RuleInput, RuleTable, SpaceRule, mixture, used_kinds
from planner.backends.rules.training_kinds import training_kinds
from planner.model.spec import ModelSpec
from planner.strategy.strategy import RecomputeModule

_VALIDATE = "megatron-core 0.19.2 training/arguments.py"
_CONFIG = "megatron-core 0.19.2 core/transformer/transformer_config.py"
_LAYOUT = "megatron-core 0.19.2 core/transformer/pipeline_parallel_layer_layout.py"
_GROUPS = "megatron-core 0.19.2 core/parallel_state.py"


def _batch(given: RuleInput) -> str | None:
    s, samples = given.strategy, given.workload.global_batch_size
    each = s.micro_batch_size * s.dp
    return f"global batch {samples} is not a multiple of micro-batch x dp = {each}" if samples % each else None


def _micro_batches(given: RuleInput) -> str | None:
    s, samples = given.strategy, given.workload.global_batch_size
    each = s.micro_batch_size * s.dp
    if samples % each or samples == s.global_batch_size:
        return None
    return (
        f"Megatron would run {samples // each} micro-batches of a global batch of {samples}, the plan has"
        f" {s.num_microbatches}: it derives them from batch, micro-batch {s.micro_batch_size} and dp {s.dp}"
    )


def _interleaved_needs_pipeline(given: RuleInput) -> str | None:
    s = given.strategy
    return f"vpp={s.vpp} needs pp > 1" if s.vpp > 1 and s.pp == 1 else None


def _overlap_param_gather(given: RuleInput) -> str | None:
    s = given.strategy
    if s.zero_stage >= 1 and s.overlap_param_gather and not s.overlap_grad_reduce:
        return "overlap_param_gather needs overlap_grad_reduce"
    return None


def _tp_overlap(given: RuleInput) -> str | None:
    s = given.strategy
    return "overlap_tp needs sequence parallelism (sp) and tp > 1" if s.overlap_tp and not (s.sp and s.tp > 1) else None


def _experts_divide(given: RuleInput) -> str | None:
    s, moe = given.strategy, mixture(given.model)
    if s.ep == 1:
        return None
    if moe is None:
        return f"ep={s.ep} needs a model with experts"
    return f"{moe.num_experts} experts do not divide over ep={s.ep}" if moe.num_experts % s.ep else None


def _heads(given: RuleInput) -> str | None:
    tp = given.strategy.tp
    for kind in used_kinds(given.model):
        if kind.attention.num_heads % tp:
            return f"{kind.attention.num_heads} attention heads do not divide over tp={tp}"
    return None


def _kv_heads(given: RuleInput) -> str | None:
    tp = given.strategy.tp
    for kind in used_kinds(given.model):
        groups = kind.attention.num_kv_heads
        if kind.attention.kind == "gqa" and groups % tp and tp % groups:
            return f"{groups} key-value heads and tp={tp}: one must divide the other"
    return None


def _expert_bias(given: RuleInput) -> str | None:
    moe = mixture(given.model)
    if moe is not None and moe.expert_bias and given.strategy.etp > 1:
        return "experts with bias need etp = 1"
    return None


def _layout_count(given: RuleInput) -> str | None:
    layers, s = given.layers_per_chunk, given.strategy
    if layers is None:
        return None
    if len(layers) != s.num_chunks:
        return f"{len(layers)} chunks given for pp x vpp = {s.num_chunks}"
    if sum(layers) != given.model.num_layers or min(layers) < 0:
        return f"the chunks hold {sum(layers)} layers, the model has {given.model.num_layers}"
    return None


def _overlap_ep(given: RuleInput) -> str | None:
    s = given.strategy
    if not s.overlap_ep:
        return None
    mtp = given.model.mtp
    # Axes come first: a search knows them before it knows the recompute, and then falls the whole layout.
    for reasons in (
        lambda: (
            ("ep > 1", s.ep > 1),
            ("vpp > 1 when pp > 1", s.pp == 1 or s.vpp > 1),
            ("at most one MTP layer", mtp is None or mtp.num_layers <= 1),
        ),
        # combined_1f1b.py:208: the interleaved schedule takes no chunk that Megatron-FSDP wraps.
        lambda: (("zero_stage 0 or 1 when pp > 1", s.pp == 1 or s.zero_stage < 2),),
        lambda: (
            ("no full recompute", s.recompute != "full"),
            ("no recompute of the whole 'moe' module", s.recompute != "selective" or "moe" not in s.recompute_modules),
        ),
    ):
        missing = [reason for reason, holds in reasons() if not holds]
        if missing:
            return f"overlap_ep needs {', '.join(missing)}"
    return None


def _expert_grid(given: RuleInput) -> str | None:
    s = given.strategy
    block = s.etp * s.ep * s.pp
    if s.world_size % block:
        return f"{s.world_size} ranks do not divide into etp x ep x pp = {block}"
    return None


def _axis_order(given: RuleInput) -> str | None:
    s = given.strategy
    if s.axis_order == "tp-cp-ep-pp-dp" and s.pp > 1 and s.etp * s.ep != s.tp * s.cp:
        return "axis order tp-cp-ep-pp-dp with pp > 1 needs etp x ep = tp x cp; use tp-cp-ep-dp-pp"
    return None


def _optimizer_instances(given: RuleInput) -> str | None:
    s = given.strategy
    if s.zero_stage == 0 or s.dp_replicate == 1:
        return None
    if (s.dp * s.cp) % s.dp_replicate:
        return f"dp x cp = {s.dp * s.cp} does not divide into dp_replicate={s.dp_replicate} optimizer instances"
    if mixture(given.model) and s.edp % s.dp_replicate:
        return f"the experts' dp={s.edp} does not divide into dp_replicate={s.dp_replicate} optimizer instances"
    return None


def interleaved_group_problem(given: RuleInput) -> str | None:
    """Why the interleaved schedule would stop at its first step (D2), None when it runs."""
    s = given.strategy
    if s.schedule != "interleaved" or s.pp == 1:
        return None
    group = s.microbatch_group_size or s.pp
    if not s.pp <= group <= s.num_microbatches:
        return (
            f"micro-batch group {group} must lie between pp={s.pp} and the {s.num_microbatches} micro-batches;"
            " use vpp=1 or more micro-batches"
        )
    rest = s.num_microbatches % group
    if 0 < rest < s.pp:
        return (
            f"{s.num_microbatches} micro-batches leave a rest of {rest} over groups of {group}: 0 or >= {s.pp} needed"
        )
    return None


def _widths(given: RuleInput) -> str | None:
    s = given.strategy
    for kind in used_kinds(given.model):
        if kind.mlp and kind.mlp.intermediate_size % s.tp:
            return f"MLP width {kind.mlp.intermediate_size} does not divide over tp={s.tp}"
        if kind.moe and kind.moe.expert_intermediate_size % s.etp:
            return f"expert width {kind.moe.expert_intermediate_size} does not divide over etp={s.etp}"
        if kind.moe and kind.moe.shared_intermediate_size % s.tp:
            return f"shared expert width {kind.moe.shared_intermediate_size} does not divide over tp={s.tp}"
    return None


def _sequence_shards(given: RuleInput) -> str | None:
    s, tokens = given.strategy, given.workload.sequence_length
    shards = s.tp * (2 * s.cp if s.cp > 1 else 1) if s.sp else 1
    if tokens % shards:
        return f"sequence length {tokens} does not divide into {shards} shards (tp{' x 2 cp' if s.cp > 1 else ''})"
    return None


def _all_to_all_heads(given: RuleInput) -> str | None:
    s = given.strategy
    if s.cp == 1 or s.cp_kind != "all_to_all":
        return None
    for kind in used_kinds(given.model):
        attention = kind.attention
        heads, groups = attention.num_heads, attention.num_kv_heads
        if heads % (s.tp * s.cp):
            return f"all-to-all context parallelism: {heads} heads do not divide over tp x cp = {s.tp * s.cp}"
        if attention.kind == "gqa" and groups % (s.tp * s.cp):
            return f"all-to-all context parallelism: {groups} key-value heads do not divide over tp x cp"
    return None


def _schedule(given: RuleInput) -> str | None:
    return schedule_problem(given, "Megatron has no {} schedule; it runs 1f1b and interleaved")


def schedule_problem(given: RuleInput, refusal: str) -> str | None:
    """Is it 1f1b or interleaved, with as many chunks as that means?  ``refusal`` has a gap for another one's name."""
    s = given.strategy
    if s.pp == 1 and s.vpp == 1:
        return None
    if s.schedule not in ("1f1b", "interleaved"):
        return refusal.format(s.schedule)
    if (s.schedule == "interleaved") != (s.vpp > 1):
        return f"schedule {s.schedule} with vpp={s.vpp}: interleaved means vpp > 1 and 1f1b means vpp = 1"
    return None


def _recompute_modules(given: RuleInput) -> str | None:
    return recompute_problem(given, cannot_recompute)


def recompute_problem(given: RuleInput, why_not: Callable[[ModelSpec, RecomputeModule], str | None]) -> str | None:
    """Which module of selective recompute cannot be recomputed?  ``why_not`` is the release's answer for one."""
    s = given.strategy
    if s.recompute != "selective":
        return None
    if not s.recompute_modules:
        return "selective recompute needs at least one module"
    reasons = (why_not(given.model, module) for module in s.recompute_modules)
    return next((f"recompute of {m!r}: {r}" for m, r in zip(s.recompute_modules, reasons, strict=True) if r), None)


def _offload_and_recompute(given: RuleInput) -> str | None:
    s = given.strategy
    if s.activation_offload and s.recompute == "full":
        return "activation offload and full recompute exclude each other: offload moves what recompute does not keep"
    return None


PROBLEM_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("A15", f"{_VALIDATE}:1313", positions),
    optimizers(f"{_VALIDATE}:2777", has=ALL, instead="use adam or muon"),
    fp8_recipes(f"{_CONFIG}:573", has=EVERY_RECIPE),
    SpaceRule("D6", "megatron-core 0.19.2 core/optimizer/__init__.py:768", emerging_fp16),
)
"""Those that no strategy mends, as the model's."""
KINDS = training_kinds(f"{_VALIDATE}: no flag says it", instead="name --backend megatron-bridge or accelerate")
PACKED = packed_sequences(f"{_VALIDATE}:3159, core/datasets/gpt_dataset.py:287", packings=CONCATENATED)
STRATEGY_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("A3", f"{_VALIDATE}:694", _batch, ("micro_batch_size", "dp")),
    SpaceRule("A8", f"{_VALIDATE}:967", _interleaved_needs_pipeline, ("vpp", "pp")),
    SpaceRule("A9", f"{_VALIDATE}:990", _overlap_param_gather, ("overlap_param_gather", "overlap_grad_reduce")),
    SpaceRule("A13", f"{_VALIDATE}:1131, 1686", layer_wise, ("zero_stage",)),
    SpaceRule("U4", "megatron-core 0.19.2 core/optimizer/__init__.py:835", dealt_to_all, ("dp_replicate",)),
    SpaceRule("A14", f"{_VALIDATE}:1295", context_parallel_sequence, ("cp",)),
    packed_context("megatron-core 0.19.2 core/utils.py:2642", lambda _: "the ring needs documents padded to 2 cp"),
    SpaceRule("A18", f"{_VALIDATE}:1401", _tp_overlap, ("overlap_tp", "sp", "tp")),
    SpaceRule("A21", f"{_VALIDATE}:1600", _experts_divide, ("ep",)),
    SpaceRule("B1", "megatron-core 0.19.2 core/model_parallel_config.py:502", sequence_parallel, ("sp", "tp")),
    SpaceRule("B2", f"{_CONFIG}:1323", _heads, ("tp",)),
    SpaceRule("B2b", f"{_CONFIG}:1338", _kv_heads, ("tp",)),
    SpaceRule(
        "B14",
        f"{_CONFIG}:1375, core/ssm/mamba_mixer.py:260-272, mamba_context_parallel.py:101",
        mixer_heads,
        ("tp", "cp"),
    ),
    SpaceRule("B15", f"{_CONFIG}:2837", indexed_context, ("cp",)),
    SpaceRule(
        "B16",
        "megatron-core 0.19.2 core/models/hybrid/hybrid_layer_allocation.py",
        pattern_chunks,
        ("pp", "vpp"),
    ),
    SpaceRule("B8", f"{_LAYOUT}:86", _layout_count, ("pp", "vpp")),
    SpaceRule("B11", f"{_CONFIG}:2279", _expert_bias, ("etp",)),
    SpaceRule(
        "B13",
        f"{_CONFIG}:2669",
        _overlap_ep,
        ("overlap_ep", "ep", "vpp", "pp", "zero_stage", "recompute", "recompute_modules"),
    ),
    SpaceRule(
        "B17",
        f"megatron-core 0.19.2 core/transformer/moe/token_dispatcher.py:1743, fused_a2a.py:35, {_CONFIG}:2683",
        dispatcher_problem,
        ("dispatcher", "ep", "etp", "overlap_ep"),
    ),
    SpaceRule(
        "A27",
        f"{_VALIDATE}:1060-1062, 1808",
        fp8_parameters,
        ("fp8_parameters", "zero_stage", "optimizer_offload"),
    ),
    SpaceRule("C1", f"{_GROUPS}:882", _expert_grid, ("etp", "ep", "tp", "cp", "dp")),
    SpaceRule("C2", f"{_GROUPS}:898", _axis_order, ("axis_order", "etp", "ep", "tp", "cp")),
    SpaceRule("C4", f"{_GROUPS}:922 and 1447", _optimizer_instances, ("dp_replicate", "ep")),
    SpaceRule(
        "D2",
        "megatron-core 0.19.2 core/pipeline_parallel/schedules.py:1133",
        interleaved_group_problem,
        ("microbatch_group_size", "num_microbatches", "vpp"),
    ),
    SpaceRule(
        "D3", "megatron-core 0.19.2 core/transformer/moe/moe_layer.py:628", experts_need_sequence_parallel, ("sp", "tp")
    ),
    SpaceRule("D5", "megatron-core 0.19.2 core/tensor_parallel/layers.py:965", _widths, ("tp", "etp")),
    SpaceRule(
        "O1",
        "megatron-core 0.19.2 core/optimizer/optimizer_config.py:430",
        precision_aware,
        ("zero_stage", "optimizer_offload"),
    ),
    SpaceRule(
        "U1",
        "not enforced before the run: sequence shards of sequence parallelism",
        _sequence_shards,
        ("sp", "tp", "cp"),
    ),
    SpaceRule(
        "U2",
        "not enforced before the run: heads of all-to-all attention in Transformer Engine",
        _all_to_all_heads,
        ("cp_kind", "cp", "tp"),
    ),
    SpaceRule(
        "U3",
        "not enforced at all: Megatron derives the number of micro-batches itself",
        _micro_batches,
        ("num_microbatches", "micro_batch_size", "dp"),
    ),
    SpaceRule(
        "P1",
        "megatron-core 0.19.2 core/pipeline_parallel/schedules.py: get_forward_backward_func",
        _schedule,
        ("schedule", "vpp"),
    ),
    SpaceRule(
        "P2",
        f"{_CONFIG}:1766 and transformer_layer.py:450; tensor_parallel/random.py:583 (an MLP with biases)",
        _recompute_modules,
        ("recompute", "recompute_modules"),
    ),
    SpaceRule("P3", f"{_CONFIG}:1720 and 1848", _offload_and_recompute, ("activation_offload", "recompute")),
    SpaceRule(
        "P4", f"{_CONFIG}: recompute_num_layers, recompute_modules", one_recompute, ("recompute", "recompute_modules")
    ),
    SpaceRule(
        "P5",
        f"{_CONFIG}:1707, core/optimizer/optimizer_config.py: one switch",
        one_offload(some_layers_alone),
        ("optimizer_offload", "activation_offload"),
    ),
    SpaceRule("P6", f"{_LAYOUT}: which rank holds a chunk", chunks_in_place, ("pp", "vpp")),
    SpaceRule("P7", f"{_VALIDATE}: --cp-comm-type", context_kind, ("cp_kind", "cp")),
)
TABLE = RuleTable("megatron", (*PROBLEM_RULES, KINDS, PACKED, *MODEL_RULES), STRATEGY_RULES)


SPACE = Space(
    Columns(
        schedules=("1f1b", "interleaved"),
        overlap_ep=(True, False),
        dispatchers=("alltoall", "allgather", "deepep", "hybridep"),
        fp8_parameters=True,
        uniform_recompute=True,
        # core/transformer/pipeline_parallel_layer_layout.py:97-117 asks for one embedding first and one loss last, and
        # for no layer beside them; core/transformer/transformer_block.py:703 runs a block without layers.
        empty_ends=True,
    ),
    TABLE,
    spelled,
    usual_dispatcher,
)
