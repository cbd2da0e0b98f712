"""What DeepSpeed's config, engines, AutoTP, AutoEP and Ulysses refuse, or get wrong in silence."""

from __future__ import annotations

from planner.backends.deepspeed.version import DEEPSPEED_VERSION
from planner.backends.rules.divisibility import exact_batch, positions
from planner.backends.rules.optimizers import optimizers
from planner.backends.rules.rule import RuleInput, SpaceRule, mixtures, used_kinds
from planner.backends.rules.token_mixers import runs_along_sequence

_DS = f"deepspeed {DEEPSPEED_VERSION}"
_ULYSSES = f"{_DS} runtime/sequence_parallel/ulysses_sp.py"
_FOLDING = f"{_DS} module_inject/auto_ep_folding.py"

AUTOEP_PRESETS: dict[str, str] = {
    "mixtral": "mixtral",
    "qwen2_moe": "qwen3_moe",
    "qwen3_moe": "qwen3_moe",
    "deepseek_v2": "deepseek_v2",
    "deepseek_v3": "deepseek_v3",
    "kimi_k2": "deepseek_v3",
}
"""HF model type -> AutoEP preset (module_inject/auto_ep_presets/)."""

AUTOTP_FAMILIES = frozenset({"llama", "mistral", "qwen2", "qwen3", "granite", "gpt_neox"})
"""Classes whose own sharding plan (transformers 5.23 ``base_model_tp_plan``) AutoTP understands; no mixture is."""


def _zero_stage(given: RuleInput) -> str | None:
    stage = given.strategy.zero_stage
    return None if 0 <= stage <= 3 else f"zero_optimization.stage must be 0 to 3, is {stage}"


def _zero_with_pipeline(given: RuleInput) -> str | None:
    s = given.strategy
    return f"ZeRO-{s.zero_stage} cannot run with pp={s.pp}; use zero_stage 0 or 1" if s.pp > 1 < s.zero_stage else None


def _plain_with_fp32_gradients(given: RuleInput) -> str | None:
    if given.strategy.zero_stage == 0 and given.workload.gradient_dtype == "fp32":
        return "zero_stage 0 accumulates gradients only in the model's dtype; use zero_stage 1 or bf16 gradients"
    return None


def _plain_pipeline(given: RuleInput) -> str | None:
    s = given.strategy
    if s.zero_stage == 0 and s.pp > 1 and given.workload.precision != "fp16":
        return (
            "with a pipeline, bf16 training without ZeRO runs the BF16 optimizer, which shards states: use zero_stage 1"
        )
    return None


def _v_schedule_microbatches(given: RuleInput) -> str | None:
    s = given.strategy
    if s.schedule == "dualpipev" and s.num_microbatches < 2 * s.pp:
        return f"DualPipeV needs at least 2 x pp = {2 * s.pp} micro-batches, has {s.num_microbatches}"
    return None


def _query_heads(given: RuleInput) -> str | None:
    cp = given.strategy.cp
    bad = sorted({k.attention.num_heads for k in used_kinds(given.model) if k.attention.num_heads % cp})
    return f"Ulysses splits heads: {bad[0]} heads are not a multiple of cp={cp}" if bad else None


def _kv_heads(given: RuleInput) -> str | None:
    cp = given.strategy.cp
    counts = {kind.attention.num_kv_heads for kind in used_kinds(given.model)}
    bad = sorted(count for count in counts if count % cp and cp % count)
    return f"Ulysses: {bad[0]} key/value heads and cp={cp} do not divide each other" if bad else None


def _sequence_shards(given: RuleInput) -> str | None:
    tokens, cp = given.workload.sequence_length, given.strategy.cp
    return f"sequence length {tokens} is not a multiple of cp={cp}" if tokens % cp else None


def _ulysses_latent(given: RuleInput) -> str | None:
    if given.strategy.cp > 1 and any(kind.attention.kind == "mla" for kind in used_kinds(given.model)):
        return "Ulysses assumes one width for queries, keys and values; latent attention has two: use cp=1"
    return None


def ulysses_mixers(given: RuleInput) -> str | None:
    """Does a state run along the sequence that Ulysses would cut?  It trades heads around attention calls only."""
    mixer = runs_along_sequence(given.model)
    if given.strategy.cp > 1 and mixer is not None:
        return f"the sequence is gathered for attention only, and {mixer} needs all of it: use cp=1"
    return None


def _ulysses_window(given: RuleInput) -> str | None:
    windows = [kind.attention.sliding_window for kind in used_kinds(given.model)]
    if given.strategy.cp > 1 and any(window and window < given.workload.sequence_length for window in windows):
        return "Ulysses drops the attention mask, and a sliding window with it: use cp=1"
    return None


def _muon(given: RuleInput) -> str | None:
    s = given.strategy
    if given.workload.optimizer != "muon":
        return None
    if max(s.tp, s.cp, s.pp, s.ep) > 1 or mixtures(given.model):
        return "Muon runs only on a dense model with plain data parallelism: tp, cp, pp and ep must be 1"
    return None


def _muon_offload(given: RuleInput) -> str | None:
    if given.workload.optimizer in {"muon", "sgd"} and given.strategy.optimizer_offload:
        return f"offload of {given.workload.optimizer} states has no CPU optimizer in DeepSpeed; use adam"
    return None


def _reduced_states(given: RuleInput) -> str | None:
    if given.workload.optimizer == "adam_bf16_states":
        return "bf16 Adam states come only with bf16 master weights, which loses small updates; use optimizer adam"
    return None


def _expert_count(given: RuleInput) -> str | None:
    ep = given.strategy.ep
    if ep == 1:
        return None
    bad = sorted({moe.num_experts for moe in mixtures(given.model) if moe.num_experts % ep})
    if not mixtures(given.model):
        return f"ep={ep} on a model without experts"
    return f"{bad[0]} experts cannot be split over ep={ep}" if bad else None


def _expert_grid(given: RuleInput) -> str | None:
    s = given.strategy
    ranks = s.tp * s.cp * s.dp
    return f"ep x etp = {s.ep * s.etp} does not divide the {ranks} ranks of a stage" if ranks % (s.ep * s.etp) else None


def _expert_preset(given: RuleInput) -> str | None:
    family = given.model.family
    if given.strategy.ep > 1 and mixtures(given.model) and family not in AUTOEP_PRESETS:
        return f"AutoEP has no preset for {family}; use ep=1 (presets: {', '.join(sorted(AUTOEP_PRESETS))})"
    return None


def _experts_with_ulysses(given: RuleInput) -> str | None:
    s = given.strategy
    return f"AutoEP (ep={s.ep}) refuses Ulysses' groups; use cp=1" if s.ep > 1 and s.cp > 1 else None


def _offload_needs_zero(given: RuleInput) -> str | None:
    s = given.strategy
    return (
        "optimizer_offload is ignored without ZeRO; use zero_stage 1"
        if s.optimizer_offload and not s.zero_stage
        else None
    )


def _tensor_shards(given: RuleInput) -> str | None:
    tp = given.strategy.tp
    for kind in used_kinds(given.model):
        sizes = {"heads": kind.attention.num_heads, "key/value heads": kind.attention.num_kv_heads}
        if kind.mlp is not None:
            sizes["MLP width"] = kind.mlp.intermediate_size
        if given.model.tie_embeddings:
            sizes["vocabulary rows"] = given.model.vocab_size
        for name, size in sizes.items():
            if size % tp:
                return f"AutoTP splits {size} {name} over tp={tp} unevenly and leaves ranks with less or nothing to do"
    return None


def _tensor_family(given: RuleInput) -> str | None:
    family = given.model.family
    if given.strategy.tp > 1 and family not in AUTOTP_FAMILIES:
        return (
            f"AutoTP cannot use the sharding plan of {family}; use tp=1 (it can: {', '.join(sorted(AUTOTP_FAMILIES))})"
        )
    return None


def _empty_chunk(given: RuleInput) -> str | None:
    inner = (given.layers_per_chunk or ())[1:-1]
    return f"chunk {inner.index(0) + 1} is empty: an optimizer needs parameters" if 0 in inner else None


ENGINE_RULES: tuple[SpaceRule, ...] = (
    SpaceRule(
        "C1",
        f"{_DS} runtime/config.py:602",
        exact_batch("train_batch_size", "accumulation steps"),
        ("micro_batch_size", "num_microbatches", "dp"),
    ),
    SpaceRule("C2", f"{_DS} runtime/zero/config.py (ZeroStageEnum)", _zero_stage, ("zero_stage",)),
    SpaceRule("E1", f"{_DS} runtime/pipe/engine.py:76", _zero_with_pipeline, ("zero_stage", "pp")),
    SpaceRule("E2", f"{_DS} runtime/engine.py:2323", _plain_with_fp32_gradients, ("zero_stage",)),
    SpaceRule("T4", f"{_DS} runtime/engine.py:2316-2320", _plain_pipeline, ("zero_stage", "pp")),
    SpaceRule(
        "E3", f"{_DS} runtime/pipe/dualpipev.py:102", _v_schedule_microbatches, ("num_microbatches", "schedule", "pp")
    ),
    SpaceRule("E4", f"{_ULYSSES}:148", _query_heads, ("cp",)),
    SpaceRule("E5", f"{_ULYSSES}:150", _kv_heads, ("cp",)),
    SpaceRule("E6", f"{_ULYSSES} (required_query_shape)", _sequence_shards, ("cp",)),
    SpaceRule("E7", f"{_ULYSSES} (required_key_value_shape)", _ulysses_latent, ("cp",)),
    SpaceRule(
        "E18", f"{_ULYSSES} (uattn_wrapper); transformers 5 modeling files of these layers", ulysses_mixers, ("cp",)
    ),
    SpaceRule("T1", f"{_ULYSSES} (uattn_wrapper)", _ulysses_window, ("cp",)),
    SpaceRule("E8", f"{_DS} runtime/bf16_optimizer.py:61", _muon, ("tp", "cp", "pp", "ep")),
    SpaceRule("E9", f"{_DS} runtime/engine.py (_configure_basic_optimizer)", _muon_offload, ("optimizer_offload",)),
    SpaceRule("E11", f"{_DS} module_inject/auto_ep_config.py:371-380", _expert_count, ("ep",)),
    SpaceRule("E12", f"{_FOLDING}:112", _expert_grid, ("ep", "etp", "tp", "cp", "dp")),
    SpaceRule("M43", f"{_DS} module_inject/auto_ep_presets/registry.py", _expert_preset, ("ep",)),
    SpaceRule("E14", f"{_DS} module_inject/tp_plan_converter.py", _tensor_family, ("tp",)),
    SpaceRule("E15", f"{_DS} runtime/engine.py:834", _experts_with_ulysses, ("ep", "cp")),
    SpaceRule(
        "T2",
        f"{_DS} runtime/engine.py (_do_optimizer_sanity_check)",
        _offload_needs_zero,
        ("optimizer_offload", "zero_stage"),
    ),
    SpaceRule("T3", f"{_DS} runtime/engine.py:1037, module_inject/tp_shard.py", _tensor_shards, ("tp",)),
    SpaceRule("E17", "torch 2.13 optim/optimizer.py (empty parameter list)", _empty_chunk, ("pp", "vpp")),
)
QUESTION_RULES: tuple[SpaceRule, ...] = (
    SpaceRule("E10", f"{_DS} runtime/precision_config.py:68, runtime/config.py:701-714", _reduced_states),
    SpaceRule("E16", "transformers 5 (position embedding table)", positions),
    optimizers(
        f"{_DS} runtime/config.py:63; bf16_optimizer.py and zero/: flat partitions, where no row or column is left",
        has=("adam", "adam_bf16_states", "sgd", "muon", "lion"),
        instead="use adam, or name --backend accelerate",
    ),
)
"""Those that no strategy mends, as the model's."""
