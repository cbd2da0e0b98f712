"""The small parts that diffusion transformers share: embeddings of patches, text and time step, modulation, output."""

from __future__ import annotations

from itertools import pairwise

from planner.model.layer_parts import PartBlock, PartSpec

TIME_FEATURES = 256
"""Sines and cosines of a time step (diffusers 0.42.1 models/embeddings.py: ``num_channels=256``)."""


def patches(in_features: int, hidden: int, *, bias: bool = True) -> PartSpec:
    """A convolution whose stride is its kernel, or a projection of packed latents: one matmul a token."""
    return PartSpec(name="patch_embedding", kind="projection", in_features=in_features, out_features=hidden, bias=bias)


def per_sample(name: str, *widths: int, bias: bool = True) -> tuple[PartSpec, ...]:
    """An MLP over one vector a sample: ``widths`` in order."""
    steps = list(pairwise(widths))
    names = [name] if len(steps) == 1 else [f"{name}_{number}" for number in range(1, len(steps) + 1)]
    return tuple(
        PartSpec(name=each, kind="held", in_features=first, out_features=second, bias=bias)
        for each, (first, second) in zip(names, steps, strict=True)
    )


def text(*widths: int, name: str = "text", bias: bool = True, share: float = 1.0) -> tuple[PartSpec, ...]:
    """Projections of every text token, or of a ``share`` of the second sequence: ``widths`` in order."""
    return tuple(
        PartSpec(
            name=f"{name}_projection_{number}",
            kind="projection",
            in_features=first,
            out_features=second,
            bias=bias,
            rows=share,
            of_source=True,
        )
        for number, (first, second) in enumerate(pairwise(widths), start=1)
    )


def modulation(hidden: int, block: PartBlock, *, learned: int = 0, gated: bool = True) -> tuple[PartSpec, ...]:
    """Shift and scale of a block's input, and the gate on its output; ``learned`` scalars of the layer's own table."""
    shift = PartSpec(name=f"{block}_modulation", kind="scale", block=block, in_features=hidden, learned=learned)
    gate = PartSpec(name=f"{block}_gate", kind="scale", block=block, in_features=hidden, learned=0)
    return (shift, gate) if gated else (shift,)


def made_modulation(name: str, block: PartBlock, width: int, outputs: int, *, bias: bool = True) -> PartSpec:
    """The projection of the time step that gives shift, scale and gate."""
    return PartSpec(name=name, kind="held", block=block, in_features=width, out_features=outputs, bias=bias)


def output(
    hidden: int, patch_width: int, *, learned: int = 0, norm: int = 0, bias: bool = True
) -> tuple[PartSpec, ...]:
    """Norm with ``norm`` learned scalars, modulation with ``learned`` of them, projection to a patch."""
    return (
        PartSpec(name="output_norm", kind="norm", in_features=hidden, learned=norm),
        PartSpec(name="output_modulation", kind="scale", in_features=hidden, learned=learned),
        PartSpec(name="output_projection", kind="projection", in_features=hidden, out_features=patch_width, bias=bias),
    )
