"""The keys that ``maxtext.yml`` may hold, and the values that the release takes.

MaxText refuses unknown keys (configs/pyconfig.py:270) and values of another type (pydantic); ranges and choices here
are those of configs/types.py for the keys that a plan sets.  Keys that say nothing about the plan are the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from planner.backends.emission.emission import Finding
from planner.backends.maxtext.decoder_blocks import BLOCKS
from planner.backends.maxtext.mesh_axes import KEYS, MESH_AXES
from planner.backends.maxtext.saved_tensors import TENSORS
from planner.backends.maxtext.version import CONFIG_FILE, MAXTEXT_VERSION, TYPES
from planner.backends.rules.foreign_names import foreign_names

Check = Callable[[Any], str]
"""What is wrong with a value, empty when nothing is."""


def _whole(low: int) -> Check:
    def check(value: Any) -> str:
        good = isinstance(value, int) and not isinstance(value, bool) and value >= low
        return "" if good else f"must be a whole number of at least {low}"

    return check


def _number(value: Any) -> str:
    good = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return "" if good else "must be a number that is not negative"


def _batch(value: Any) -> str:
    return _number(value) or ("" if value > 0 else "must be above zero")


def _switch(value: Any) -> str:
    return "" if isinstance(value, bool) else "must be true or false"


def _one_of(*choices: Any) -> Check:
    return lambda value: "" if value in choices else f"must be {' or '.join(map(repr, choices))}"


def _words(value: Any) -> str:
    good = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return "" if good else "must be a list of words"


def _any(value: Any) -> str:
    return ""


KEYS_OF_A_PLAN: dict[str, Check] = {
    "base_config": _one_of("base.yml"),
    "model_name": _one_of("default"),
    "decoder_block": _one_of(*dict.fromkeys(block.name for block in BLOCKS.values())),
    **dict.fromkeys(
        [
            "base_emb_dim",
            "base_num_query_heads",
            "base_num_kv_heads",
            "head_dim",
            "base_mlp_dim",
            "base_num_decoder_layers",
            "vocab_size",
            "max_target_length",
            "gradient_accumulation_steps",
            "num_slices",
            "num_layers_per_pipeline_stage",
            "num_pipeline_repeats",
            "num_pipeline_microbatches",
            "rope_max_timescale",
            "max_position_embeddings",
            "original_max_position_embeddings",
            "num_experts",
            "num_experts_per_tok",
            "max_segments_per_seq",
            "base_moe_mlp_dim",
            *(f"{level}_{word}_parallelism" for level in ("dcn", "ici") for word in KEYS.values()),
        ],
        _whole(1),
    ),
    **dict.fromkeys(
        foreign_names("""
        first_num_dense_layers shared_experts mtp_num_layers q_lora_rank kv_lora_rank qk_nope_head_dim
        qk_rope_head_dim v_head_dim n_routing_groups topk_routing_group trainable_position_size sliding_window_size
        local_rope_max_timescale
        """),
        _whole(0),
    ),
    **dict.fromkeys(
        foreign_names("""
        logits_via_embedding normalize_embedding_logits use_qk_norm attention_bias norm_topk_prob routed_bias
        fused_qkv use_iota_embed use_post_attn_norm use_post_ffw_norm allow_split_physical_axes
        shard_optimizer_over_data scan_layers optimizer_memory_host_offload packing context_parallel_load_balance
        use_tokamax_splash enable_dropout use_qwix_quantization moe_use_megatron_seq_aux_loss
        """),
        _switch,
    ),
    **dict.fromkeys(
        [
            "normalization_layer_epsilon",
            "attn_logits_soft_cap",
            "final_logits_soft_cap",
            "routed_scaling_factor",
            "routed_bias_update_rate",
            "load_balance_loss_weight",
            "rope_factor",
            "beta_fast",
            "mscale",
            "dropout_rate",
        ],
        _number,
    ),
    **dict.fromkeys(TENSORS, _one_of("remat", "device", "offload")),
    "per_device_batch_size": _batch,
    "mlp_activations": _words,
    "attention_type": _one_of("global", "mla"),
    "rope_type": _one_of("yarn", "llama3.1"),
    "routed_score_func": _one_of("softmax", "sigmoid"),
    "hardware": _one_of("tpu", "gpu"),
    "mesh_axes": _one_of(list(MESH_AXES)),
    "remat_policy": _one_of("full", "custom"),
    "attention": _one_of("flash", "cudnn_flash_te"),
    "grain_packing_type": _one_of("best_fit", "concat_then_split"),
    "context_parallel_strategy": _one_of("ring", "ulysses"),
    "dtype": _one_of("bfloat16"),
    "weight_dtype": _one_of("float32"),
    "grad_dtype": _one_of("float32", "bfloat16"),
    "opt_type": _one_of("adamw"),
    "quantization": _one_of("fp8_full", "te_fp8_currentscaling"),
}
"""Key -> what it may be.  Every one is in the release's base.yml."""

KEYS_OF_THE_USER = frozenset(
    foreign_names("""
    run_name base_output_directory steps dataset_type dataset_path dataset_name hf_path hf_train_files
    grain_train_files grain_worker_count tokenizer_path tokenizer_type learning_rate warmup_steps_fraction
    lr_schedule_type gradient_clipping_threshold adam_b1 adam_b2 adam_eps adam_weight_decay enable_checkpointing
    checkpoint_period async_checkpointing load_parameters_path load_full_state_path eval_interval eval_steps
    log_period profiler enable_tensorboard init_weights_seed data_shuffle_seed
    """)
)
"""Data, learning rate, checkpoints and logs: the plan says nothing about them."""


def config_findings(config: Mapping[str, Any]) -> list[Finding]:
    """Keys that MaxText, or a plan, does not have, and values that they cannot take."""
    return [Finding(f"maxtext.{rule}", message, TYPES, f"#/{key}") for rule, message, key in _findings(config)]


def _findings(config: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for key, value in config.items():
        if key in KEYS_OF_THE_USER:
            continue
        check = KEYS_OF_A_PLAN.get(key)
        if check is None:
            yield "F1", f"{key} is no key that a plan for MaxText {MAXTEXT_VERSION} sets; remove it", key
        elif message := check(value):
            yield "F2", f"{key} {message}, is {value!r}", key
    for key in _NEEDED:
        if key not in config:
            yield "F3", f"{key} is missing from {CONFIG_FILE}", key


_NEEDED = foreign_names(
    """
    base_config decoder_block base_num_decoder_layers per_device_batch_size gradient_accumulation_steps num_slices
    mesh_axes
    """
)
"""Without these the file means something else: MaxText would take the values of its own base.yml."""
