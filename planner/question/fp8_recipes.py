"""The ways to scale what matrix products take in 8 or in 4 bit, as data.

A recipe says how large the blocks are that share a scale, and when the largest value of a block is found.  Weights,
activations that layers pass on, head, router and attention scores stay in 16 bit under each of them: what a layer's
own projections multiply is cast, forward and in both products of the backward pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Fp8RecipeName = Literal["delayed", "tensorwise", "blockwise", "mxfp8", "nvfp4"]
NARROW_BYTES: Mapping[str, float] = MappingProxyType({"fp8": 1.0, "fp4": 0.5 + 1.0 / 16})
"""Bytes of a matmul's operand as it is kept and sent; of fp4 with a scale of one byte for 16 elements."""


@dataclass(frozen=True, slots=True)
class Fp8Recipe:
    """One recipe: what a cast moves, and on which devices there are kernels."""

    name: Fp8RecipeName
    title: str
    cast_bytes: float
    """Bytes moved for an element that a matmul takes: read, and written as it stands and transposed, with scales."""
    architectures: tuple[str, ...]
    """Beginnings of the names of device generations."""
    source: str
    format: Literal["fp8", "fp4"] = "fp8"
    """What the products take: which of the device's rates they run at, and how wide a kept operand is."""


_LATER = ("blackwell", "rubin", "feynman")
_ALL = (
    Fp8Recipe(
        "delayed", "one scale a tensor, from the steps before", 4.0, ("ada", "hopper", *_LATER),
        "transformer_engine 2.x common/recipe: DelayedScaling",
    ),
    Fp8Recipe(
        # Two bytes more where the largest value is searched for by a kernel of its own; 27 measured rows of this recipe
        # are predicted 4 % too slow without them (shared ground truth, precision fp8-cs).
        "tensorwise", "one scale a tensor, from the tensor itself", 4.0, ("ada", "hopper", *_LATER),
        "transformer_engine 2.x common/recipe: Float8CurrentScaling",
    ),
    Fp8Recipe(
        # An fp32 scale for 128 elements of each copy.
        "blockwise", "one scale for 128 elements, 128 x 128 of weights", 4.0 + 2.0 * 4.0 / 128, ("hopper",),
        "transformer_engine 2.x common/recipe: Float8BlockScaling (on Blackwell emulated by MXFP8); DeepSeek-V3,"
        " arXiv 2412.19437, section 3.3",
    ),
    Fp8Recipe(
        # A scale of one byte for 32 elements of each copy.
        "mxfp8", "one scale for 32 elements, a power of two", 4.0 + 2.0 / 32, _LATER,
        "transformer_engine 2.x common/recipe: MXFP8BlockScaling; OCP Microscaling Formats v1.0",
    ),
    Fp8Recipe(
        # Read twice: the largest value of the tensor, transposed under a Hadamard matrix, is found by a kernel before
        # the cast (quantizer.cpp, nvte_hadamard_transform_amax).
        "nvfp4", "4 bit, a scale of 8 bit for 16 elements (16 x 16 of weights) and one a tensor",
        2.0 + 2.0 + 2.0 * NARROW_BYTES["fp4"], _LATER,
        "TransformerEngine d0067d0da common/recipe/__init__.py:489: NVFP4BlockScaling; compute capability 10.0:"
        " pytorch/quantization.py:171; arXiv 2509.25149",
        "fp4",
    ),
)  # fmt: skip
FP8_RECIPES: Mapping[str, Fp8Recipe] = MappingProxyType({each.name: each for each in _ALL})
"""Every recipe by its name."""


def usual_recipe(architecture: str) -> Fp8RecipeName:
    """What is written where nobody says a recipe: MXFP8 where there are kernels for it, else one scale a tensor."""
    return "mxfp8" if architecture.lower().startswith(FP8_RECIPES["mxfp8"].architectures) else "tensorwise"
