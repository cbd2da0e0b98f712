"""A diffusion transformer: a denoiser of latents in the place of a language model.

A sample is a picture or a video that a VAE has turned into latents; ``patch`` of them make one token.  Latents come in
through a patch embedding, the text through a projection, the time step through an MLP; a projection gives the patch
back, and the loss is the mean squared error to noise or velocity.  There is no vocabulary.

Text reaches the layers in one of two ways:

* cross-attention to text states (Wan, LTX-Video, PixArt): the layers run over latent tokens; ``LayerSpec.cross``;
* joint attention (CogVideoX, Flux, SD3): text and latent tokens are one sequence.  Where each stream has weights of
  its own (``LayerSpec.joint``), a token meets one set of the two, which are equally large: the operators of the layer
  run once over the whole sequence, and the weights are held twice (Esser et al., arXiv 2403.03206, figure 2).

Adaptive norms (Peebles and Xie, arXiv 2212.09748, section 3.2): shift, scale and gate of a layer are made of the time
step once a sample, so the projection that makes them (part ``held``) costs its weights and no work a token.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import prod

from pydantic import Field

from planner.model.layer_parts import PartSpec, part_operator
from planner.model.operator import Operator
from profiles.document import Document
from profiles.errors import DocumentInvalid

ConfigValue = bool | int | float | str | tuple[int, ...] | tuple[float, ...] | None
_UNTIL_KEYS = ("qkv", "qk_norm")


class JointSpec(Document):
    """Second weights of a layer, for text tokens: as large as those for latent tokens."""

    text_ends: bool = Field(
        default=False, description="text gives keys, values and queries only: no output projection, no MLP (SD3's last)"
    )


class DenoiserSpec(Document):
    """The ends of a diffusion transformer, and how a sample becomes tokens."""

    class_name: str = Field(min_length=1, description="class of diffusers")
    config: tuple[tuple[str, ConfigValue], ...] = Field(
        default=(), description="arguments of the class that are not its defaults, by name"
    )
    entry: tuple[PartSpec, ...] = Field(description="patch embedding, text projection, time step")
    exit: tuple[PartSpec, ...] = Field(min_length=1, description="norm and modulation; last the projection to a patch")
    patch: tuple[int, int, int] = Field(description="latent frames, rows and columns of one token")
    compression: tuple[int, int] = Field(description="frames of one latent frame, pixels of one latent row or column")
    text_tokens: int = Field(gt=0, description="text tokens of a sample, where the workload says no source_length")
    text_in_sequence: bool = Field(description="joint attention: sequence_length counts latent and text tokens")
    usual_sample: tuple[int, int, int] = Field(description="frames, height and width that the family was released for")

    def sample_tokens(self, frames: int, height: int, width: int, text_tokens: int | None = None) -> int:
        """``sequence_length`` of one sample: the tokens of its grid, and those of the text where it is in the sequence.

        Raises DocumentInvalid as ``sample_grid``.
        """
        text = (text_tokens or self.text_tokens) if self.text_in_sequence else 0
        return prod(self.sample_grid(frames, height, width)) + text

    def sample_grid(self, frames: int, height: int, width: int) -> tuple[int, int, int]:
        """Frames, rows and columns of tokens of a sample of ``frames`` pictures of ``height`` x ``width`` pixels.

        ``ceil(lf / pt), height / (s * ph), width / (s * pw)`` with ``lf = (frames - 1) / t + 1`` latent frames:
        a causal VAE keeps the first frame and makes one of each ``t`` that follow (arXiv 2503.20314, section 4.1).

        Raises DocumentInvalid for sizes that patches do not divide.
        """
        time, space = self.compression
        rows, columns = space * self.patch[1], space * self.patch[2]
        where = f"{frames}x{height}x{width}"
        if min(frames, height, width) < 1:
            raise DocumentInvalid("a sample has at least one frame, row and column", where=where, hint="81x480x832")
        if height % rows or width % columns:
            near = [max(round(size / step), 1) * step for size, step in ((height, rows), (width, columns))]
            hint = f"use a height in steps of {rows} and a width in steps of {columns}: {frames}x{near[0]}x{near[1]}"
            raise DocumentInvalid("patches of latents do not divide this sample", where=where, hint=hint)
        if (frames - 1) % time:
            near_frames = max(round((frames - 1) / time), 0) * time + 1
            hint = f"use {near_frames} frames"
            raise DocumentInvalid(f"frames after the first must come in groups of {time}", where=where, hint=hint)
        return -(-((frames - 1) // time + 1) // self.patch[0]), height // rows, width // columns


def denoiser_entry(denoiser: DenoiserSpec, hidden_size: int) -> tuple[Operator, ...]:
    """List what turns latents, text and time step into the first layer's input.

    Where layers attend to text states, those are kept once for all of them.
    """
    parts = tuple(part_operator(part, "embedding") for part in denoiser.entry)
    if denoiser.text_in_sequence:
        return parts
    states = Operator(
        name="text_states",
        op_class="residual",
        module="residual",
        shard="sequence",
        saved_width=hidden_size,
        saved_shard="sequence",
        of_source=True,
    )
    return (*parts, states)


def denoiser_exit(denoiser: DenoiserSpec) -> tuple[Operator, ...]:
    """List what turns the last layer's output into the loss; the loss is fp32."""
    last = denoiser.exit[-1]
    width = last.out_features or last.in_features
    loss = Operator(
        name="denoising_loss",
        op_class="residual",
        module="head",
        shard="sequence",
        read_width=2 * width,
        write_width=width,
        saved_width=width,
        saved_shard="sequence",
        saved_bytes_per_element=4.0,
        saved_from=last.name,
    )
    return (*(part_operator(part, "head") for part in denoiser.exit), loss)


def two_streams(joint: JointSpec, operators: tuple[Operator, ...], parts: Collection[str]) -> tuple[Operator, ...]:
    """The operators of a layer with a second set of weights for text; ``parts``: names of parts, held once."""

    def held_twice(operator: Operator) -> bool:
        if operator.name in parts or operator.module == "norm":
            return False
        return operator.name in _UNTIL_KEYS or not joint.text_ends

    return tuple(
        replace(each, parameters=2 * each.parameters, replicated_parameters=2 * each.replicated_parameters)
        if held_twice(each)
        else each
        for each in operators
    )
