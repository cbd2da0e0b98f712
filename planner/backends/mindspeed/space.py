"""The strategies that MindSpeed on Megatron-LM core_v0.12.1 refuses, or accepts and fails on later.

Letters as in ``megatron.space`` (A ``validate_args``, B config, C process groups, D build or first step, U enforced
nowhere, P no flag says it, M the model), and V the device, W the workload, S schedules, E expert overlap, T
tensor-parallel overlap, F FSDP, O the optimizer, K activation swapping.  Rules that core_v0.12.1 shares with 0.19.2
are Megatron's own functions with the source at this tag.

``validate_args`` was read in the copy that ``flag_table`` names, not at the tag itself; lines of megatron-core 0.12.1
are those of its wheel.
"""

from __future__ import annotations

from dataclasses import replace

from planner.backends.backend import Space
from planner.backends.megatron.space import PROBLEM_RULES as LATER_PROBLEM_RULES
from planner.backends.megatron.space import STRATEGY_RULES as LATER_RULES
from planner.backends.megatron.space import recompute_problem, schedule_problem
from planner.backends.megatron.spelling import plain_switches
from planner.backends.megatron.stage_rules import one_offload, whole_stages_only
from planner.backends.mindspeed.model_rules import MODEL_RULES
from planner.backends.mindspeed.recompute import cannot_recompute, in_order
from planner.backends.rules.columns import Columns
from planner.backends.rules.optimizers import optimizers
from planner.backends.rules.packed_sequences import packed_sequences
from planner.backends.rules.rule import RuleInput, RuleTable, SpaceRule, mixtures, used_kinds
from planner.backends.rules.training_kinds import training_kinds
from planner.strategy.strategy import Strategy

ARCHITECTURES = ("ascend910b", "ascend910c", "ascend950")
"""Atlas A2, A3 and 950: what MindSpeed's documents list."""
LEAST_MEMORY_BYTES = 64 * 10**9
"""Of a device; the Ascend 910B4 (32 GiB) is an Atlas A2 without it."""
_GUIDE = "MindSpeed branch 26.1.0_core_r0.12.1 docs/zh/user-guide/quickstart.md:23"
_VALIDATE = "Megatron-LM core_v0.12.1 megatron/training/arguments.py validate_args"
_CORE = "megatron-core 0.12.1 core"
_FEATURES = "MindSpeed core_r0.12.1 features_manager"
_LATER = {rule.id: rule for rule in (*LATER_PROBLEM_RULES, *LATER_RULES)}


def _shared(rule_id: str, source: str) -> SpaceRule:
    """A rule of 0.19.2 that this release has too, with the source at its tag."""
    return replace(_LATER[rule_id], source=source)


def _device(given: RuleInput) -> str | None:
    if given.architecture.startswith(ARCHITECTURES):
        return None
    known = ", ".join(ARCHITECTURES)
    return f"MindSpeed runs on Huawei Ascend ({known}) only, not on {given.architecture!r}; name another --backend"


def _device_memory(given: RuleInput) -> str | None:
    held = given.device_memory_bytes
    if not held or held >= LEAST_MEMORY_BYTES:
        return None
    return f"MindSpeed asks for devices of 64 GB or more, not of {held / 2**30:.0f} GiB; name another --backend"


def _fp8(given: RuleInput) -> str | None:
    if given.workload.precision != "fp8":
        return None
    return "fp8 training is not written for this release (Atlas A2 and A3 have no fp8 units); use bf16"


def _state_precision(given: RuleInput) -> str | None:
    if given.workload.optimizer != "adam_bf16_states":
        return None
    return "bf16 optimizer states need Transformer Engine's Adam, which MindSpeed does not replace; use adam"


def _muon(given: RuleInput) -> str | None:
    s, workload = given.strategy, given.workload
    if workload.optimizer != "muon":
        return None
    if workload.precision == "fp16":
        return "muon does not work with fp16; use bf16"
    if s.zero_stage >= 2:
        return "muon does not work with FSDP; use zero_stage 0 or 1"
    if s.dp_replicate > 1:
        return "muon shards whole layers over all data-parallel ranks; use dp_replicate = 1"
    return None


def _fp16_experts(given: RuleInput) -> str | None:
    if given.workload.precision == "fp16" and mixtures(given.model):
        return "grouped experts train in bf16 only"
    return None


def _mtp_context(given: RuleInput) -> str | None:
    return "MTP layers exclude context parallelism: cp = 1" if given.model.mtp and given.strategy.cp > 1 else None


def _kv_heads(given: RuleInput) -> str | None:
    tp = given.strategy.tp
    for kind in used_kinds(given.model):
        groups = kind.attention.num_kv_heads
        if kind.attention.kind == "gqa" and groups % tp:
            return (
                f"{groups} key-value heads do not divide over tp={tp} (later releases repeat them, this one does not)"
            )
    return None


def dualpipev_problems(given: RuleInput) -> tuple[str, ...]:
    """What keeps DualPipeV from running, its overlap of gradients aside; empty when nothing does."""
    s, layers = given.strategy, given.layers_per_chunk
    conditions = (
        ("pp > 1", s.pp > 1),
        ("vpp = 2", s.vpp == 2),
        (
            f"layers in multiples of 2 x pp = {2 * s.pp}, or chunks that --noop-layers fill up to as many",
            _fill_up(given.model.num_layers, layers, 2 * s.pp),
        ),
        (f"at least 2 x pp = {2 * s.pp} micro-batches", s.num_microbatches >= 2 * s.pp),
        ("untied embeddings", not given.model.tie_embeddings),
        ("cp = 1", s.cp == 1),
        ("zero_stage < 2 (no FSDP)", s.zero_stage < 2),
    )
    return tuple(words for words, holds in conditions if not holds)


def _fill_up(total: int, layers: tuple[int, ...] | None, chunks: int) -> bool:
    """Whether chunks are equal, or become so with as few empty layers as the number of layers asks for."""
    if layers is None:
        return total % chunks == 0
    return _none_empty(layers, "dualpipev") and max(layers) == -(-total // chunks)


def _none_empty(layers: tuple[int, ...], schedule: str) -> bool:
    """Of DualPipeV's chunks the last may hold the head alone: tests_extend/system_tests/deepseek, noop layer 3 of 4."""
    return min(layers[:-1] if schedule == "dualpipev" and len(layers) > 1 else layers) > 0


def _dualpipev(given: RuleInput) -> str | None:
    s = given.strategy
    if s.schedule != "dualpipev":
        return None
    missing = list(dualpipev_problems(given))
    missing += ["overlap_grad_reduce = False"] if s.overlap_grad_reduce else []
    return f"dualpipev needs {', '.join(missing)}" if missing else None


def _schedule(given: RuleInput) -> str | None:
    if given.strategy.schedule == "dualpipev":
        return None
    return schedule_problem(given, "MindSpeed has no {} schedule; it runs 1f1b, interleaved and dualpipev")


def _overlap_ep(given: RuleInput) -> str | None:
    s, layers = given.strategy, given.layers_per_chunk
    if not s.overlap_ep:
        return None
    interleaved = s.schedule == "interleaved" and s.vpp > 1
    conditions = (
        ("a model with experts", bool(mixtures(given.model))),
        ("ep > 1", s.ep > 1),
        ("etp = 1", s.etp == 1),
        ("dispatcher = alltoall", s.dispatcher == "alltoall"),
        ("overlap_grad_reduce = False", not s.overlap_grad_reduce),
        ("vpp > 1 or dualpipev when pp > 1", s.pp == 1 or s.vpp > 1),
        ("at least 2 x pp micro-batches with interleaving", not interleaved or s.num_microbatches >= 2 * s.pp),
        ("micro-batch groups of pp", not interleaved or s.microbatch_group_size in (0, s.pp)),
        ("no empty chunk", layers is None or _none_empty(layers, s.schedule)),
        ("no activation_offload", not s.activation_offload),
    )
    missing = [words for words, holds in conditions if not holds]
    return f"overlap_ep (--moe-fb-overlap) needs {', '.join(missing)}" if missing else None


def without_mc2(given: RuleInput) -> bool:
    """Whether the devices have no MC2: Atlas A3, as its page says."""
    return given.architecture.startswith("ascend910c")


def _overlap_tp(given: RuleInput) -> str | None:
    s = given.strategy
    if not s.overlap_tp:
        return None
    if without_mc2(given):
        return "overlap_tp (--use-ascend-mc2) is not supported on Atlas A3"
    if mixtures(given.model):
        return "overlap_tp (--use-ascend-mc2) excludes models with experts"
    return None if s.sp and s.tp > 1 else "overlap_tp (--use-ascend-mc2) needs sequence parallelism (sp) and tp > 1"


def _fsdp(given: RuleInput) -> str | None:
    s = given.strategy
    if s.zero_stage < 2:
        return None
    if s.dp_replicate > 1:
        return "FSDP of this release shards over all data-parallel ranks: dp_replicate = 1"
    if not s.overlap_grad_reduce or (s.zero_stage == 3 and not s.overlap_param_gather):
        return "FSDP of this release always overlaps gradients (and with zero_stage 3 parameters)"
    return None


def _swap_optimizer(given: RuleInput) -> str | None:
    s = given.strategy
    if not s.optimizer_offload:
        return None
    if s.zero_stage != 1:
        return "optimizer offload (--swap-optimizer) works on the distributed optimizer: zero_stage = 1"
    if given.workload.optimizer != "adam":
        return "optimizer offload (--swap-optimizer) is written for adam only (Muon's is not in all of the branch)"
    return None


def _recompute_modules(given: RuleInput) -> str | None:
    return recompute_problem(given, cannot_recompute)


def swap_attention_problems(given: RuleInput) -> tuple[str, ...]:
    """What keeps activations from being swapped to the host; empty when nothing does."""
    s, layers = given.strategy, given.layers_per_chunk
    conditions = (
        ("no full recompute", s.recompute != "full"),
        ("another schedule than dualpipev", s.schedule != "dualpipev"),
        ("equal chunks", layers is None or len(set(layers)) == 1),
    )
    return tuple(words for words, holds in conditions if not holds)


def _swap_attention(given: RuleInput) -> str | None:
    missing = swap_attention_problems(given) if given.strategy.activation_offload else ()
    return f"activation offload (--swap-attention) needs {', '.join(missing)}" if missing else None


PROBLEM_RULES: tuple[SpaceRule, ...] = (
    training_kinds("MindSpeed mindspeed/features_manager: no adapters"),
    packed_sequences("MindSpeed core_r0.12.1: --reset-attention-mask is not described here"),
    SpaceRule("V1", f"{_GUIDE}: Atlas A2, A3 and 950", _device),
    SpaceRule("V2", f"{_GUIDE}: on-chip memory", _device_memory),
    _shared("A15", f"{_VALIDATE}: max-position-embeddings"),
    SpaceRule("W1", "MindSpeed core_r0.12.1 features_manager/megatron_basic/transformer_engine_basic.py", _fp8),
    SpaceRule("W2", f"{_CORE}/optimizer/optimizer_config.py:165", _state_precision),
    SpaceRule("W4", f"{_VALIDATE}: grouped GEMM", _fp16_experts),
    optimizers(
        f"{_VALIDATE}: --optimizer", has=("adam", "adam_bf16_states", "sgd", "muon"), instead="use adam or muon"
    ),
)
"""Those that no strategy mends, as the model's."""
STRATEGY_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("W3", f"{_FEATURES}/optimizer/muon_optimizer_feature.py", _muon, ("zero_stage", "dp_replicate")),
    _shared("A3", f"{_CORE}/num_microbatches_calculator.py:341"),
    _shared("A8", f"{_VALIDATE}: interleaved schedule"),
    _shared("A9", f"{_VALIDATE}: overlap-param-gather"),
    _shared("A14", f"{_VALIDATE}: seq-length"),
    _shared("A21", f"{_VALIDATE}: expert parallelism"),
    SpaceRule("A26", f"{_VALIDATE}: multi-token prediction", _mtp_context, ("cp",)),
    _shared("B1", f"{_CORE}/model_parallel_config.py:353"),
    _shared("B2", f"{_CORE}/transformer/transformer_config.py:559"),
    SpaceRule("B2b", f"{_CORE}/transformer/transformer_config.py:574", _kv_heads, ("tp",)),
    _shared("B8", f"{_FEATURES}/pipeline_parallel/pipeline_model_parallel_layout_feature.py and its page"),
    _shared("C1", f"{_CORE}/parallel_state.py: expert grid"),
    _shared("C2", f"{_CORE}/parallel_state.py:716"),
    _shared("C4", f"{_CORE}/parallel_state.py:813"),
    _shared("D2", f"{_CORE}/pipeline_parallel/schedules.py:777"),
    _shared("D3", f"{_CORE}/transformer/moe/moe_layer.py:135"),
    _shared("D5", f"{_CORE}/tensor_parallel/layers.py:765"),
    _shared("U1", "not enforced before the run: sequence shards of sequence parallelism"),
    _shared("U2", f"{_FEATURES}/context_parallel/ulysses_context_parallel.py"),
    _shared("U3", "not enforced at all: Megatron derives the number of micro-batches itself"),
    SpaceRule(
        "S1",
        f"{_FEATURES}/pipeline_parallel/dualpipev_feature.py and docs/features/dualpipev.md",
        _dualpipev,
        ("schedule", "vpp", "pp", "num_microbatches", "overlap_grad_reduce", "cp", "zero_stage"),
    ),
    SpaceRule(
        "S2", f"{_CORE}/pipeline_parallel/schedules.py: get_forward_backward_func", _schedule, ("schedule", "vpp")
    ),
    SpaceRule(
        "E1",
        f"{_FEATURES}/moe/fb_overlap.py:75-120 (the dispatcher: :88) and docs of the layout",
        _overlap_ep,
        (
            *("overlap_ep", "ep", "etp", "dispatcher", "overlap_grad_reduce", "vpp", "pp", "schedule"),
            *("num_microbatches", "microbatch_group_size", "activation_offload"),
        ),
    ),
    SpaceRule(
        "T1", f"{_FEATURES}/tensor_parallel/mc2.py and docs/features/mc2.md", _overlap_tp, ("overlap_tp", "sp", "tp")
    ),
    SpaceRule(
        "F1",
        f"{_VALIDATE}: data-parallel-sharding-strategy",
        _fsdp,
        ("zero_stage", "dp_replicate", "overlap_grad_reduce", "overlap_param_gather"),
    ),
    SpaceRule(
        "O1", f"{_FEATURES}/optimizer/swap_optimizer_feature.py", _swap_optimizer, ("optimizer_offload", "zero_stage")
    ),
    SpaceRule(
        "P2", f"{_CORE}/transformer/transformer_config.py:722", _recompute_modules, ("recompute", "recompute_modules")
    ),
    SpaceRule(
        "K4",
        f"{_FEATURES}/memory/swap_attention.py and core/memory/swap_attention",
        _swap_attention,
        ("activation_offload", "recompute", "schedule"),
    ),
    _shared("P4", f"{_CORE}/transformer/transformer_config.py: recompute_num_layers, recompute_modules"),
    SpaceRule(
        "P5",
        f"{_FEATURES}/memory/swap_attention.py, optimizer/swap_optimizer_feature.py: one switch",
        one_offload(whole_stages_only),
        ("optimizer_offload", "activation_offload"),
    ),
    _shared("P6", f"{_FEATURES}/pipeline_parallel/pipeline_model_parallel_layout_feature.py, dualpipev_feature.py"),
    _shared("P7", f"{_FEATURES}/context_parallel/context_parallel_feature.py"),
)
TABLE = RuleTable("mindspeed", (*PROBLEM_RULES, *MODEL_RULES), STRATEGY_RULES)


def spelled(s: Strategy, given: RuleInput) -> Strategy:
    """As for Megatron-LM; recomputed modules have one order, the one in which they are read back."""
    plain = plain_switches(s, given)
    return replace(plain, recompute_modules=in_order(plain.recompute_modules))


SPACE = Space(
    Columns(
        schedules=("1f1b", "interleaved", "dualpipev"),
        overlap_ep=(True, False),
        dispatchers=("alltoall", "allgather"),  # DeepEP and HybridEP are CUDA
        overlap_tp_off=True,
        overlap_data=((True, True), (False, False)),
        uniform_recompute=True,
        # pipeline_model_parallel_layout_feature.py ("E|(t|)*3,m|m||L") and --noop-layers: a chunk may hold no layer.
        empty_ends=True,
    ),
    TABLE,
    spelled,
)
