"""Our FLOPs of a small model of one ``model_type`` against torch's count of its class."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from benchmarks.model_type_values import HOLDERS, part_of
from benchmarks.tower_flops import tower_flops, vision_flops
from planner.model.encoder import PatchFront
from planner.model.spec import ModelSpec


def flops_ratio(
    class_name: str, config: Any, written: Callable[[Any], dict[str, Any]], length: int = 64
) -> float | None:
    """Our FLOPs of a forward pass over torch's count; None where the class does not run.

    The small model runs on the CPU: masks and routing depend on data, which the meta device does not have.
    """
    import torch
    import transformers
    from torch.utils.flop_counter import FlopCounterMode

    from planner.model.flops import forward_flops_per_token
    from planner.model.hf_config import model_from_hf_config

    spec = model_from_hf_config(written(config), "surveyed", "config.json")
    try:
        config = copy.deepcopy(config)
        for name in HOLDERS:  # what is said of the whole does not reach the parts
            if part_of(config, name) is not None:
                part_of(config, name)._attn_implementation = "eager"
        if getattr(config, "index_topk", None):  # the classes score all tokens and mask those that are not chosen
            config.index_topk = length
            spec = model_from_hf_config(written(config), "surveyed", "config.json")
        if getattr(config, "prompt_length", None):  # tokens that the class puts in front
            config.prompt_length = 0
        if getattr(config, "zero_expert_num", None):  # how many tokens choose them depends on the weights
            config.zero_expert_num = 0
            spec = model_from_hf_config(written(config), "surveyed", "config.json")
        if getattr(config, "kv_lora_rank", None):  # latent attention runs with as many key-value heads only
            config.num_key_value_heads = config.num_attention_heads
            config.head_dim = config.qk_rope_head_dim  # the width that these classes rotate
        books = config.num_codebooks if hasattr(config, "codebook_vocab_size") else 0
        ways = {"attn_implementation": "eager", "experts_implementation": "eager"}
        model = getattr(transformers, class_name)._from_config(config, **ways).eval()
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            model(**_inputs(spec, length, books), use_cache=False)
        if spec.towers:
            towers = tower_flops(model, spec) if spec.further_towers else 0
            towers += vision_flops(model, spec) if spec.vision is not None else 0
            return round(_with_towers(spec, length) / float(counter.get_total_flops() + towers), 5)
    except Exception:
        return None
    ours = forward_flops_per_token(spec.model_copy(update={"mtp": None}), length, causal=False)
    if spec.encoder is not None and spec.encoder.front is not None:  # its convolutions are products of ours as well
        return round(float(ours * length / counter.get_total_flops()), 5)
    return round(float((ours - _scan_flops(spec)) * length / _without_scans(counter, model, length)), 5)


def _with_towers(spec: ModelSpec, length: int) -> float:
    """Our FLOPs of a forward pass of one sequence and one item of every tower."""
    from planner.model.flops import forward_flops_per_token, tower_flops_per_item

    towers = sum(tower_flops_per_item(tower) for tower in spec.towers) / 3.0
    return forward_flops_per_token(spec, length, causal=False) * length + towers


def _inputs(spec: ModelSpec, length: int, codebooks: int) -> dict[str, Any]:
    """What one forward pass reads: tokens, of an encoder-decoder those of both sides, or a spectrum.

    ``codebooks``: a position holds a token of text and as many of audio.
    """
    import torch

    tokens = torch.zeros(1, length, dtype=torch.long)
    if spec.encoder is None:
        return {"input_ids": tokens[..., None].repeat(1, 1, 1 + codebooks) if codebooks else tokens}
    front = spec.encoder.front
    if isinstance(front, PatchFront):
        return _patches(front, spec.encoder.sequence_length, tokens)
    if front is None:
        return {"input_ids": tokens, "decoder_input_ids": tokens}
    frames = front.stride * (spec.encoder.sequence_length or length)
    return {"input_features": torch.zeros(1, front.input_width, frames), "decoder_input_ids": tokens}


def _patches(front: PatchFront, fixed: int | None, tokens: Any) -> dict[str, Any]:
    """Flattened patches with their row and column, or an image of three channels that gives the tower's tokens."""
    import torch

    if fixed is None:
        return {"flattened_patches": torch.ones(1, tokens.shape[1], 2 + front.input_width), "decoder_input_ids": tokens}
    side = round(((fixed - 1) * front.input_width / 3) ** 0.5)
    return {"pixel_values": torch.zeros(1, 3, side, side), "decoder_input_ids": tokens}


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
    import torch

    counts = {name.split(".", 1)[-1]: _matmul_flops(each) for name, each in counter.get_flop_counts().items()}
    total = float(_matmul_flops(counter.get_flop_counts()["Global"]))
    for name, module in model.named_modules():
        scans = any(hasattr(module, part) for part in ("layer_type", "conv1d", "mlstm_backend"))
        if not scans or hasattr(module, "is_causal") or name not in counts:  # softmax attention is no scan
            continue
        if getattr(module, "layer_type", None) in ("full_attention", "sliding_attention"):
            continue
        children = {
            child: counts.get(f"{name}.{child}", 0) for child, _ in module.named_children() if child != "mlstm_backend"
        }
        total -= counts[name] - sum(children.values())
        steps = getattr(module, "dt_proj", None)
        if steps is not None and not children.get("dt_proj"):
            total += 2.0 * steps.weight.numel() * length
        for weight in ("x_proj_weight", "dt_proj_weight"):  # those of Mamba-1 in heads (zamba)
            total += 2.0 * getattr(module, weight, torch.empty(0)).numel() * length
    return total


def _matmul_flops(counted: Any) -> int:
    """What the counter found, without convolutions."""
    return sum(value for operation, value in counted.items() if "convolution" not in str(operation))
