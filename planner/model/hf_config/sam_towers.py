"""SAM as a tower: windowed layers with relative positions, a neck, and convolutions that make fewer, wider patches.

Shapes: ``transformers`` 5.23, ``sam`` and the vision towers of got_ocr2, deepseek_ocr2, unlimited_ocr.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.image_parts import Part, convolution, norm, scores
from planner.model.hf_config.vit_towers import ImageTower, Vit, grid, read_vit
from planner.model.spec import AttentionSpec

_SAM = Vit(inner="mlp_dim", rows=grid, exit_norm=False, qkv_bias="qkv_bias")


@dataclass(frozen=True, slots=True)
class Sam:
    """The tower with its neck, and what the neck gives: channels on a square of ``side`` patches."""

    tower: ImageTower
    channels: int
    side: int

    def shrink(self, *channels: int) -> tuple[Part, int, int]:
        """Convolutions 3 x 3 of stride 2 after the neck: their weights, and channels and patches that are left."""
        part, inputs, side = Part(), self.channels, self.side
        for outputs in channels:
            side = (side + 1) // 2
            part += convolution(inputs, outputs, 9, side**2)
            inputs = outputs
        return part, inputs, side**2


def neck(width: int, channels: int, patches: int) -> Part:
    """Two convolutions, each with a norm."""
    first = convolution(width, channels, 1, patches) + norm(channels)
    return first + convolution(channels, channels, 9, patches) + norm(channels)


def read_sam(keys: ClassKeys) -> Sam:
    """Read a SAM encoder."""
    tower = read_vit(keys, _SAM)
    side = max(round(tower.patches**0.5), 1)
    if not keys.on("use_abs_pos"):
        tower = replace(tower, rest=tower.rest + Part(-tower.patches * tower.width))
    listed = keys.defaults.get("global_attn_indexes") or []
    full = {layer for layer in keys.reader.integers("global_attn_indexes", listed) if layer < tower.num_layers}
    window, channels = keys.integer("window_size"), keys.integer("output_channels")
    windowed = tower.num_layers - len(full)
    rest = tower.rest + _windows(tower, windowed, side, window) + neck(tower.width, channels, tower.patches)
    if keys.on("use_rel_pos"):
        rest += _relative(tower, len(full), side, side) + _relative(tower, windowed, side, window)
    return Sam(replace(tower, rest=rest, num_windowed_layers=windowed, window_patches=window**2), channels, side)


def _relative(tower: ImageTower, layers: int, side: int, reach: int) -> Part:
    """Relative positions of ``layers``: a table an axis, which every query is multiplied with."""
    core = tower.layer.attention
    queries = (-(-side // reach) * reach) ** 2
    return Part(2 * (2 * reach - 1) * core.head_dim, 4 * queries * reach * tower.width).times(layers)


def _windows(tower: ImageTower, layers: int, side: int, window: int) -> Part:
    """What padding to whole windows adds to attention and its projections, and windows wider than the image."""
    padded = (-(-side // window) * window) ** 2
    width = tower.width
    assert isinstance(tower.layer.attention, AttentionSpec)
    projections = 8 * (padded - tower.patches) * width * width
    counted = scores(tower.patches, min(window**2, tower.patches), width).flops
    return Part(0, projections + scores(padded, window**2, width).flops - counted).times(layers)
