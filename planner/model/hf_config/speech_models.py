"""Speech models whose towers are kinds of their own: voxtral_realtime, fun_asr_nano, vibevoice_asr.

Shapes: ``transformers`` 5.23 modeling files.
"""

from __future__ import annotations

from planner.model.hf_config.audio_towers import REFERENCE_FRAMES, two_convolutions
from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.image_parts import Part, convolution, linear, mlp, norm
from planner.model.hf_config.layers import divided_heads
from planner.model.hf_config.reader import ConfigReader
from planner.model.hf_config.vision_towers import vision_layer
from planner.model.mixers.absent import AbsentMixerSpec
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, PartSpec, TowerRun, TowerSpec

REFERENCE_SAMPLES = 30 * 24000
STRIDE = 6
"""Mel frames from one stack of frames to the next (fun_asr_nano's feature extractor)."""


def _tower(runs: tuple[TowerRun, ...], tokens: int, ends: Part) -> TowerSpec:
    return TowerSpec(
        modality="audio",
        runs=runs,
        tokens_per_item=max(tokens, 1),
        extra_parameters=ends.parameters,
        ends_flops_per_item=ends.flops,
    )


def realtime_tower(keys: ClassKeys, tower: ClassKeys, text: int) -> TowerSpec:
    """Voxtral's causal encoder: gated layers, rotary positions, biases of queries, values and outputs."""
    width, heads, head_dim = tower.width("hidden_size"), tower.integer("num_attention_heads"), tower.integer("head_dim")
    layers, positions = tower.integer("num_hidden_layers"), tower.integer("max_position_embeddings")
    attention = AttentionSpec(
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=head_dim,
        v_head_dim=head_dim,
        qkv_bias=True,
        key_bias=False,
        output_bias=True,
        sliding_window=tower.optional("sliding_window"),
    )
    network = MlpSpec(intermediate_size=tower.width("intermediate_size"), gated=True)
    run = TowerRun(
        count=layers,
        layer=LayerSpec(attention=attention, mlp=network),
        hidden_size=width,
        units_per_item=positions,
        rope=True,
    )
    parameters, flops = two_convolutions(tower, width, positions)
    factor = keys.integer("downsample_factor")
    tokens = max(positions // factor, 1)
    # A bias of the last matrix of every MLP, and the norm behind the layers.
    ends = Part(parameters + (layers + 1) * width, flops) + mlp(factor * width, text, text, tokens, bias=False)
    return _tower((run,), tokens, ends)


def stacked_tower(keys: ClassKeys, tower: ClassKeys, text: int) -> TowerSpec:
    """Fun-ASR-Nano: attention beside a convolution over values; stacked frames enter the first layer as they are."""
    width, heads, layers = (
        tower.width("hidden_size"),
        tower.integer("num_attention_heads"),
        tower.integer("num_hidden_layers"),
    )
    divided_heads(tower.reader, "num_attention_heads", width, heads)
    wide, units = tower.integer("num_mel_bins") * tower.integer("num_stacked_frames"), REFERENCE_FRAMES // STRIDE
    plain = vision_layer(width, heads, tower.width("intermediate_size"), gated=False, norm="layer")
    along = PartSpec(
        name="value_convolution",
        kind="convolution",
        in_features=width,
        kernel=tower.integer("fsmn_kernel_size"),
        cut="heads",
    )
    runs = [
        TowerRun(
            count=layers, layer=plain.model_copy(update={"parts": (along,)}), hidden_size=width, units_per_item=units
        )
    ]
    # The first layer's queries, keys, values and norm are as wide as its input.
    entry = linear(wide - width, 3 * width, units, bias=False) if wide > width else Part(3 * width * (wide - width))
    last = {layers - tower.integer("num_timestamp_prediction_layers", minimum=0) - 1, layers - 1}
    ends = entry + Part(2 * (wide - width)) + norm(width).times(sum(index >= 0 for index in last))
    adaptor = keys.reader.child("adaptor_config")
    out = adaptor.integer("hidden_size", default=1024)
    if out != text:
        adaptor.refuse("hidden_size", f"must equal the language model's hidden size {text}, is {out}")
    ends += mlp(width, adaptor.integer("projector_hidden_size", default=2048), out, units)
    count = adaptor.integer("num_hidden_layers", default=2, minimum=0)
    heads = adaptor.integer("num_attention_heads", default=8)
    divided_heads(adaptor, "num_attention_heads", out, heads)
    behind = vision_layer(out, heads, adaptor.integer("intermediate_size", default=256), gated=False, norm="layer")
    runs += [TowerRun(count=count, layer=behind, hidden_size=out, units_per_item=units)] if count else []
    return _tower(tuple(runs), units, ends)


def wave_towers(keys: ClassKeys, _: ClassKeys, text: int) -> TowerSpec:
    """VibeVoice: two encoders of one waveform side by side, whose projections are added."""
    runs: list[TowerRun] = []
    ends, tokens = Part(), 1
    for holder, absent in (("acoustic_tokenizer_encoder_config", 64), ("semantic_tokenizer_encoder_config", 128)):
        known = ClassKeys(keys.reader.child(holder, {"hidden_size": absent}), "vibevoice_acoustic_tokenizer_encoder")
        own, part, tokens = _wave_encoder(known)
        out = known.width("hidden_size")
        ends += part + mlp(out, text, text, tokens) + norm(text, bias=False)
        runs += own
    return _tower(tuple(runs), tokens, ends)


def _wave_encoder(keys: ClassKeys) -> tuple[list[TowerRun], Part, int]:
    """Stages of depthwise convolutions and MLPs, with a strided convolution between two; and their last rate."""
    reader: ConfigReader = keys.reader
    ratios, depths = (
        reader.integers("downsampling_ratios", [2, 2, 4, 5, 5, 8]),
        reader.integers("depths", [3] * 6 + [8]),
    )
    if len(depths) != len(ratios) + 1 or not all((*ratios, *depths)):
        reader.refuse("depths", f"must hold one entry above 0 more than {len(ratios)} downsampling_ratios")
        ratios = [max(ratio, 1) for ratio in ratios[: len(depths) - 1]]
    kernel, units, first = keys.integer("kernel_size"), REFERENCE_SAMPLES, keys.integer("num_filters")
    widths = [first * 2**stage for stage in range(len(ratios) + 1)]
    part, runs = convolution(keys.integer("channels"), first, kernel, units, bias=True), []
    rates = [1, *ratios]
    for stage, (width, depth) in enumerate(zip(widths, depths, strict=False)):
        if stage:
            units = max(units // rates[stage], 1)
            part += convolution(widths[stage - 1], width, 2 * rates[stage], units, bias=True)
        runs.append(_wave_stage(keys, width, max(depth, 1), kernel, units))
    return runs, part + convolution(widths[-1], keys.width("hidden_size"), kernel, units, bias=True), units


def _wave_stage(keys: ClassKeys, width: int, depth: int, kernel: int, units: int) -> TowerRun:
    parts = (
        PartSpec(name="time_norm", kind="norm", block="mlp", in_features=width),
        PartSpec(name="time_convolution", kind="convolution", block="mlp", in_features=width, kernel=kernel, bias=True),
        PartSpec(name="branch_scales", kind="scale", block="mlp", in_features=width, learned=2 * width),
    )
    network = MlpSpec(intermediate_size=keys.integer("ffn_expansion") * width, gated=False, bias=True)
    layer = LayerSpec(attention=AbsentMixerSpec(), mlp=network, num_norms=1, parts=parts)
    return TowerRun(count=depth, layer=layer, hidden_size=width, units_per_item=units)
