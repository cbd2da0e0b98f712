"""Audio towers of Gemma 4 and Muse Spark beside a vision tower; shapes of ``transformers`` 5.23 modeling files.

A clip is ``REFERENCE_FRAMES`` mel frames of 160 samples.
"""

from __future__ import annotations

from planner.model.hf_config.audio_towers import REFERENCE_FRAMES
from planner.model.hf_config.conformers import conformer_runs
from planner.model.hf_config.image_models import Images
from planner.model.hf_config.image_parts import Part, convolution, linear, norm
from planner.model.hf_config.layers import divided_heads
from planner.model.mixers.absent import AbsentMixerSpec
from planner.model.mixers.conv_module import ConvModuleSpec
from planner.model.spec import AttentionSpec, LayerSpec, MlpSpec, PartSpec, TowerRun, TowerSpec

REFERENCE_SAMPLES = 160 * REFERENCE_FRAMES
_MEL_BINS = 128


def gemma4_audio(images: Images) -> TowerSpec | None:
    """Conformer blocks with norms before and behind each part, attention within chunks; None without a config."""
    if images.keys.reader.data.get("audio_config") is None:
        return None
    keys = images.part("audio_config", "gemma4_audio")
    width, heads, layers = (
        keys.width("hidden_size"),
        keys.integer("num_attention_heads"),
        keys.integer("num_hidden_layers"),
    )
    head_dim = divided_heads(keys.reader, "num_attention_heads", width, heads)
    first, second = [*keys.reader.integers("subsampling_conv_channels", [128, 32]), 1, 1][:2]
    seen = keys.integer("attention_chunk_size") + keys.integer("attention_context_left") - 1
    seen += keys.integer("attention_context_right", minimum=0)
    units = REFERENCE_FRAMES // 4
    runs = conformer_runs(
        layers,
        width,
        units,
        mlp=MlpSpec(intermediate_size=4 * width, gated=False),
        attention=AttentionSpec(
            num_heads=heads,
            num_kv_heads=heads,
            head_dim=head_dim,
            v_head_dim=head_dim,
            causal=False,
            sliding_window=seen,
        ),
        convolution=ConvModuleSpec(
            width=width, conv_kernel=keys.integer("conv_kernel_size"), vectors=1, projection_bias=False
        ),
        norm="rms",
        num_norms=(1, 2, 1),
    )
    # A scale a feature of a head, projected positions, and the norms behind both MLPs and behind a block.
    beside = Part(head_dim + 3 * width) + linear(width, width, seen // 2 + 1, bias=False)
    out = keys.width("output_proj_dims")
    ends = (
        convolution(1, first, 9, REFERENCE_FRAMES // 2 * _MEL_BINS // 2)
        + convolution(first, second, 9, units * _MEL_BINS // 4)
        + norm(first + second, bias=False)
        + linear(first // 4 * second, width, units, bias=False)
        + beside.times(layers)
        + linear(width, out, units)
        + linear(out, images.width, units, bias=False)
    )
    return TowerSpec(
        modality="audio",
        runs=runs,
        tokens_per_item=units,
        extra_parameters=ends.parameters,
        ends_flops_per_item=ends.flops,
    )


def muse_audio(images: Images) -> TowerSpec:
    """Stages of depthwise convolutions and MLPs over a waveform, each at a rate of its own."""
    keys = images.part("audio_config", "muse_spark_audio")
    patches = keys.reader.integers("patch_sizes", [16, 6, 5, 4])
    widths = keys.reader.integers("hidden_sizes", [256, 512, 1024, 2048])
    depths = keys.reader.integers("depths", [2, 2, 2, 2])
    stages = keys.integer("num_hidden_layers")
    if {len(patches), len(widths), len(depths)} != {stages} or not all((*patches, *widths)):
        keys.reader.refuse(
            "hidden_sizes", f"must hold one entry above 0 for each of {stages} stages, as its neighbours"
        )
        stages = min(stages, len(patches), len(widths), len(depths))
    ratio, kernel = keys.number("mlp_ratio", 4.0), keys.integer("conv_kernel_size")
    units, inputs, ends, runs = REFERENCE_SAMPLES, 1, Part(), []
    for patch, width, depth in zip(patches[:stages], widths, depths, strict=False):
        units = max(units // max(patch, 1), 1)
        ends += linear(inputs * patch, width, units) + norm(width, bias=False)
        inputs = width
        along = PartSpec(
            name="time_convolution", kind="convolution", block="mlp", in_features=width, kernel=kernel, bias=True
        )
        network = MlpSpec(intermediate_size=max(int(width * ratio), 1), gated=False, bias=True)
        layer = LayerSpec(attention=AbsentMixerSpec(), mlp=network, num_norms=1, parts=(along,))
        runs.append(TowerRun(count=max(depth, 1), layer=layer, hidden_size=width, units_per_item=units))
    out = keys.width("out_hidden_size")
    if out != images.width:
        keys.reader.refuse("out_hidden_size", f"must equal the language model's hidden size {images.width}, is {out}")
    ends += norm(inputs, bias=False) + linear(inputs, out, units) + norm(out, bias=False)
    return TowerSpec(
        modality="audio",
        runs=tuple(runs),
        tokens_per_item=units,
        extra_parameters=ends.parameters,
        ends_flops_per_item=ends.flops,
    )
