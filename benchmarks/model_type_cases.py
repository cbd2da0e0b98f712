"""One ``model_type`` judged: the class on the meta device against what our reader makes of its ``config.json``."""

from __future__ import annotations

import copy
import json
import warnings
from typing import Any

from benchmarks.tower_flops import tower_flops
from planner.model.spec import ModelSpec


def _each(names: str, value: Any) -> dict[str, Any]:
    return dict.fromkeys(names.split(), value)


_LAYERS = "num_hidden_layers n_layer num_layers depth encoder_layers"
_HEADS = "num_attention_heads n_head num_heads attention_heads encoder_attention_heads"
_INNER = "intermediate_size n_inner ffn_dim ffn_hidden_size dff encoder_ffn_dim"
_EXPERTS = "num_experts num_local_experts n_routed_experts moe_num_experts"

SMALL: dict[str, Any] = {
    **_each(_LAYERS, 5),
    **_each("hidden_size n_embd d_model out_hidden_size embed_dim projection_hidden_size output_dim", 96),
    **_each(_HEADS, 6),
    **_each("num_key_value_heads num_kv_heads", 2),
    "head_dim": 16,
    **_each(_INNER, 112),
    **_each("moe_intermediate_size expert_ffn_hidden_size shared_expert_intermediate_size", 40),
    **_each(_EXPERTS, 12),
    **_each("num_experts_per_tok moe_topk moe_k", 2),
    **_each("n_group topk_group n_shared_experts", 1),
    "vocab_size": 1024,
    "rotary_dim": 8,
    "q_lora_rank": 20,
    "kv_lora_rank": 16,
    **_each("pad_token_id bos_token_id eos_token_id", 1),
    "moe_layer_end_index": -1,
    **_each("linear_num_key_heads linear_num_heads index_n_heads", 3),
    **_each("linear_num_value_heads mamba_num_heads", 6),
    **_each("linear_key_head_dim linear_head_dim mamba_head_dim", 12),
    "linear_value_head_dim": 20,
    **_each("ssm_state_size state_size mamba_d_state", 24),
    "mamba_n_heads": 8,
    **_each("mamba_n_groups n_groups", 2),
    "mamba_d_ssm": 64,
    **_each("chunk_size mamba_chunk_size block_size index_topk", 16),
    "mamba_dt_rank": 9,
    **_each("moe_shared_expert_intermediate_size", 36),
    **_each("encoder_layers", 5),
    **_each("decoder_layers num_decoder_layers", 4),
    **_each("encoder_attention_heads decoder_attention_heads", 6),
    **_each("encoder_ffn_dim d_ff", 112),
    "decoder_ffn_dim": 144,
    "d_kv": 20,
    **_each("src_vocab_size tgt_vocab_size decoder_vocab_size", 1024),
    "layers_block_type": ["linear_attention", "mlp", "full_attention", "moe", "linear_attention"],
}
"""Keys of the small config, set where the class has them and still builds; in this order."""

CHANGES: dict[str, list[Any]] = {
    **_each(_LAYERS, [7]),
    **_each(_HEADS, [12]),
    **_each("num_key_value_heads num_kv_heads", [1, 3, None]),
    "head_dim": [32],
    **_each(_INNER, [200]),
    **_each("moe_intermediate_size shared_expert_intermediate_size shared_intermediate_size", [56]),
    **_each(_EXPERTS, [20]),
    **_each("n_shared_experts num_shared_experts moe_num_shared_experts", [3]),
    **_each("first_k_dense_replace decoder_sparse_step interleave_moe_layer_step", [2]),
    **_each("moe_layer_interval moe_layer_start_index", [2]),
    "mlp_only_layers": [[1]],
    **_each("q_lora_rank kv_lora_rank", [28]),
    **_each("qk_nope_head_dim qk_rope_head_dim v_head_dim", [48]),
    "vocab_size": [1536],
    **_each("max_position_embeddings n_positions", [64]),
    **_each("dense_intermediate_size intermediate_size_mlp", [72]),
    **_each("patch_size image_size", [28]),
    "spatial_merge_size": [1],
    **_each("num_mel_bins input_dim", [72]),
    **_each("feedforward_mult conv_expansion_factor cross_attention_frequency", [3]),
    **_each("max_pos_emb dim_head output_dim conv_kernel_size context_size", [24]),
    "window_size": [20],
    **_each("num_global_layers max_num_tiles", [3]),
    "cross_attention_layers": [[0, 2, 4]],
    "cross_layer_interval": [5],
    "additional_vocab_size": [2],
    "alpha_type": ["vector"],
    **_each("max_source_positions downsample_hidden_size", [64]),
    **_each("audio_merge_size downsample_factor", [2]),
    **_each("linear_num_key_heads index_n_heads", [2]),
    **_each("linear_num_value_heads linear_num_heads mamba_num_heads", [12]),
    **_each("linear_key_head_dim linear_value_head_dim linear_head_dim mamba_head_dim index_head_dim", [72]),
    **_each("linear_conv_kernel_dim conv_kernel mamba_d_conv", [3]),
    **_each("ssm_state_size state_size mamba_d_state", [40]),
    **_each("mamba_n_heads mamba_n_groups n_groups", [4]),
    **_each("mamba_d_ssm", [128, None]),
    **_each("time_step_rank mamba_dt_rank", [5, "auto"]),
    **_each("expand mamba_expand attn_layer_period expert_layer_period", [3]),
    "moe_latent_size": [28],
    "moe_shared_expert_intermediate_size": [52],
    "num_dense_layers": [1],
    "attn_layer_indices": [[1, 3]],
    "full_attn_idxs": [[0, 2]],
    "layers_block_type": [["moe", "full_attention"]],
    "indexer_types": [["full", "shared", "full", "shared", "shared"]],
    "layer_types": [["linear_attention", "full_attention", "full_attention", "linear_attention", "full_attention"]],
    "block_multiple_of": [32],
    **_each("encoder_layers decoder_layers num_decoder_layers num_sparse_encoder_layers", [3]),
    **_each("encoder_attention_heads decoder_attention_heads", [12]),
    **_each("encoder_ffn_dim decoder_ffn_dim d_ff", [200]),
    **_each("d_kv relative_attention_num_buckets embedding_size type_vocab_size", [24]),
    **_each("encoder_sparse_step num_sparse_decoder_layers", [2]),
    "feed_forward_proj": ["relu", "gated-silu"],
    **_each("src_vocab_size tgt_vocab_size decoder_vocab_size", [1536]),
    **_each("max_source_positions max_target_positions num_mel_bins", [96]),
    "attention_type": ["original_full"],
}
"""Other values of keys, tried one at a time; every boolean key of the class is turned over besides."""


_WHOLE_GROUPS = {"audio_config.intermediate_size": 384}
_QFORMER = {"projector_config.encoder_hidden_size": 96}
LISTED: dict[str, dict[str, Any]] = {
    "granite_speech": _QFORMER,
    "mllama": {
        **{"text_config.cross_attention_layers": [1, 3], "vision_config.vision_output_dim": 576},
        "vision_config.intermediate_layers_indices": [0, 1, 2, 3, 4],
    },
    "granite_speech_plus": _QFORMER,
    "glmasr": _WHOLE_GROUPS,
    "voxtral": {**_WHOLE_GROUPS, "audio_config.encoder_ffn_dim": 384},
    "lfm2_moe": {"layer_types": ["conv", "full_attention", "conv", "conv", "full_attention"]},
}
"""Keys without which a class does not build, or does not run."""


def judged(model_type: str, class_name: str) -> dict[str, Any]:
    """The verdict of one type.  Never raises: what goes wrong is the verdict's reason."""
    from planner.model.hf_config.unmodelled import UNMODELLED

    warnings.simplefilter("ignore")
    if model_type in UNMODELLED:
        return refused(model_type, class_name)
    try:
        small, default = small_config(model_type, class_name)
    except Exception as error:
        return {"verdict": "not built", "reason": f"{type(error).__name__}: {str(error)[:160]}"}
    cases = [("small", small)] + ([("default", default)] if default is not None else [])
    known, read = compared(class_name, small)
    if isinstance(read, str):
        return {"verdict": "refused", "reason": read, "small_parameters": known}
    cases += changed_configs(small)
    counts: dict[str, Any] = {"cases": 0, "refused_cases": []}
    for label, config in cases:
        try:
            known, read = compared(class_name, config)
        except Exception:  # the class does not build this one: nothing to compare
            continue
        if isinstance(read, str):
            counts["refused_cases"].append(f"{label}: {read}"[:200])
        elif read != known:
            return {"verdict": "off", "by": read - known, "case": label, "reason": f"{label}: off by {read - known:,}"}
        else:
            counts["cases"] += 1
            if label == "default":
                counts["parameters"] = known
    return {"verdict": "exact", **counts, "flops": flops_ratio(class_name, small)}


def refused(model_type: str, class_name: str) -> dict[str, Any]:
    """The reader's reason, and whether the class builds its default config."""
    try:
        config = made(model_type, {})
        known, reason = compared(class_name, config)
        return {"verdict": "refused", "reason": reason, "parameters": known}
    except Exception as error:
        said = f"{type(error).__name__}: {str(error)[:120]}"
        return {"verdict": "refused", "reason": _reason(model_type), "not_built": said}


def _reason(model_type: str) -> str:
    from planner.model.hf_config import model_from_hf_config
    from profiles.errors import DocumentInvalid

    try:
        model_from_hf_config({"model_type": model_type}, "surveyed", "config.json")
    except DocumentInvalid as error:
        return error.what
    raise AssertionError(f"{model_type} is read")


def build(class_name: str, config: Any) -> Any:
    """The module on the meta device."""
    import torch
    import transformers

    model_class = getattr(transformers, class_name)
    with torch.device("meta"):
        return model_class._from_config(copy.deepcopy(config))


def written(config: Any) -> dict[str, Any]:
    """The ``config.json`` that ``save_pretrained`` writes."""
    read: dict[str, Any] = json.loads(config.to_json_string())
    return read


def compared(class_name: str, config: Any) -> tuple[int, int | str]:
    """The module's count, and ours or why our reader refuses the config."""
    from planner.model.hf_config import model_from_hf_config
    from planner.model.parameters import total_parameters
    from profiles.errors import MeshwrightError
    from profiles.validation import FindingsInvalid

    known = sum(parameter.numel() for parameter in build(class_name, config).parameters())
    try:
        return known, total_parameters(model_from_hf_config(written(config), "surveyed", "config.json"))
    except FindingsInvalid as error:
        return known, f"{error.findings[0].pointer.lstrip('/')}: {error.findings[0].what}"
    except MeshwrightError as error:
        return known, error.what


def made(model_type: str, changes: dict[str, Any]) -> Any:
    """The config class with keys changed; ``text_config.x`` reaches a nested one."""
    from transformers import AutoConfig

    top: dict[str, Any] = {}
    for path, value in changes.items():
        *holders, key = path.split(".")
        inner = top
        for holder in holders:
            inner = inner.setdefault(holder, {"model_type": _nested_type(model_type, holder)})
        inner[key] = value
    return AutoConfig.for_model(model_type, **top)


def _nested_type(model_type: str, holder: str) -> str:
    from transformers import AutoConfig

    return str(getattr(AutoConfig.for_model(model_type), holder).model_type)


def small_config(model_type: str, class_name: str) -> tuple[Any, Any | None]:
    """A small config that builds (raises what the class raises if none does), and the default one if it builds."""
    default = made(model_type, {})
    try:
        build(class_name, default)
        builds = True
    except Exception:
        builds = False
    changes: dict[str, Any] = dict(LISTED.get(model_type, {}))
    wanted = _paths(default) | changes
    try:  # all at once, then key by key
        build(class_name, made(model_type, wanted))
        changes = wanted
    except Exception:
        for path, value in wanted.items():
            trial = {**changes, path: value}
            try:
                build(class_name, made(model_type, trial))
            except Exception:
                if builds:
                    continue
            changes = trial
    small = made(model_type, changes)
    small._survey = (model_type, changes)
    build(class_name, small)
    return small, default if builds else None


_HOLDERS = ("text_config", "vision_config", "audio_config", "encoder_config", "projector_config", "encoder", "decoder")


def _paths(config: Any) -> dict[str, Any]:
    holders = [("", config)] + [
        (f"{name}.", getattr(config, name))
        for name in _HOLDERS
        if getattr(getattr(config, name, None), "model_type", "")
    ]
    return {
        f"{prefix}{key}": value
        for prefix, holder in holders
        for key, value in SMALL.items()
        if hasattr(holder, key) and not (key == "vocab_size" and prefix in ("vision_config.", "audio_config."))
    }


def changed_configs(small: Any) -> list[tuple[str, Any]]:
    """The small config with one key changed."""
    model_type, changes = small._survey
    found = []
    for prefix, holder in [
        ("", small),
        *((f"{name}.", getattr(small, name, None)) for name in _HOLDERS),
    ]:
        if holder is None:
            continue
        for key, value in holder.to_dict().items():
            others = CHANGES.get(key, [])
            if isinstance(value, bool) and key not in ("is_decoder", "is_encoder_decoder", "return_dict"):
                others = [not value]
            for other in others:
                try:
                    config = made(model_type, {**changes, f"{prefix}{key}": other})
                except Exception:
                    continue
                found.append((f"{prefix}{key}={other}", config))
    return found


def flops_ratio(class_name: str, config: Any, length: int = 64) -> float | None:
    """Our FLOPs of a forward pass over torch's count; None where the class does not run.

    The small model runs on the CPU: masks and routing depend on data, which the meta device does not have.
    """
    import torch
    import transformers
    from torch.utils.flop_counter import FlopCounterMode

    from planner.model.flops import forward_flops_per_token
    from planner.model.hf_config import model_from_hf_config

    spec = model_from_hf_config(written(config), "surveyed", "config.json")
    if spec.vision is not None:
        return None
    try:
        config = copy.deepcopy(config)
        for name in _HOLDERS:  # what is said of the whole does not reach the parts
            if getattr(config, name, None) is not None:
                getattr(config, name)._attn_implementation = "eager"
        if getattr(config, "index_topk", None):  # the classes score all tokens and mask those that are not chosen
            config.index_topk = length
            spec = model_from_hf_config(written(config), "surveyed", "config.json")
        if getattr(config, "kv_lora_rank", None):  # latent attention runs with as many key-value heads only
            config.num_key_value_heads = config.num_attention_heads
            config.head_dim = config.qk_rope_head_dim  # the width that these classes rotate
        ways = {"attn_implementation": "eager", "experts_implementation": "eager"}
        model = getattr(transformers, class_name)._from_config(config, **ways).eval()
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            model(**_inputs(spec, length), use_cache=False)
        if spec.further_towers:
            return round(_with_towers(spec, length) / float(counter.get_total_flops() + tower_flops(model, spec)), 5)
    except Exception:
        return None
    ours = forward_flops_per_token(spec.model_copy(update={"mtp": None}), length, causal=False)
    return round(float((ours - _scan_flops(spec)) * length / _without_scans(counter, model, length)), 5)


def _with_towers(spec: ModelSpec, length: int) -> float:
    """Our FLOPs of a forward pass of one sequence and one item of every tower."""
    from planner.model.flops import forward_flops_per_token, tower_flops_per_item

    towers = sum(tower_flops_per_item(tower) for tower in spec.towers) / 3.0
    return forward_flops_per_token(spec, length, causal=False) * length + towers


def _inputs(spec: ModelSpec, length: int) -> dict[str, Any]:
    """What one forward pass reads: tokens, of an encoder-decoder those of both sides, or a spectrum."""
    import torch

    tokens = torch.zeros(1, length, dtype=torch.long)
    if spec.encoder is None:
        return {"input_ids": tokens}
    front = spec.encoder.front
    if front is None:
        return {"input_ids": tokens, "decoder_input_ids": tokens}
    frames = front.stride * (spec.encoder.sequence_length or length)
    return {"input_features": torch.zeros(1, front.input_width, frames), "decoder_input_ids": tokens}


def _scan_flops(spec: ModelSpec) -> float:
    """Of our FLOPs of a token, those of scans and short convolutions."""
    from planner.model.operators import layer_operators

    return sum(run.count * op.flops for run in spec.layer_runs for op in layer_operators(spec, run.kind))


def _without_scans(counter: Any, model: Any, length: int) -> float:
    """Torch's count outside scans and short convolutions.

    Without their kernels the classes run them by other operations (chunks or steps in torch, point-wise sums that are
    not counted): what a mixer runs itself, and its convolution, are left out on both sides.  Mamba-1 multiplies by the
    weights of its step sizes itself, which is a matmul on ours: it is put back.
    """
    counts = {name.split(".", 1)[-1]: sum(each.values()) for name, each in counter.get_flop_counts().items()}
    total = float(counter.get_total_flops())
    for name, module in model.named_modules():
        if not (hasattr(module, "layer_type") or hasattr(module, "conv1d")) or name not in counts:
            continue
        if getattr(module, "layer_type", None) in ("full_attention", "sliding_attention"):
            continue
        children = {child: counts.get(f"{name}.{child}", 0) for child, _ in module.named_children()}
        total -= counts[name] - sum(value for child, value in children.items() if child not in ("conv", "conv1d"))
        steps = getattr(module, "dt_proj", None)
        if steps is not None and not children.get("dt_proj"):
            total += 2.0 * steps.weight.numel() * length
    return total
