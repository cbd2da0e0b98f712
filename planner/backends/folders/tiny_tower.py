"""A vision tower of a few small layers, for the small form of a plan behind one."""

from __future__ import annotations

from planner.backends.deepspeed.model_config import model_config
from planner.backends.deepspeed.vision_config import TEXT_FAMILIES
from planner.errors import DocumentInvalid
from planner.model.load import model_from_data
from planner.model.spec import ModelSpec

LAYERS, HEADS, HEAD_DIM = 2, 2, 16
IMAGES = 1
"""Of a sample."""


def refuse_towers(model: ModelSpec) -> None:
    """Raises DocumentInvalid where no script trains the model's tower."""
    if model.towers and (model.vision is None or len(model.towers) > 1 or model.family not in TEXT_FAMILIES):
        hint = "plan the language model alone"
        raise DocumentInvalid(f"{model.towers[0].called} has no small form", where="--tiny", hint=hint)


def image_tokens(model: ModelSpec) -> int:
    """Tokens of a small sample that its image takes, with the one before it; 0 without a tower."""
    return 0 if model.vision is None else IMAGES * (model.vision.tokens_per_image + 1)


def tiny_tower(model: ModelSpec) -> ModelSpec:
    """A model with small layers, behind a tower that is as small.

    An image stays what it is: the towers take any resolution, and their descriptions know one. What is not a layer
    (merger, positions) follows from the sizes, which the model's own reader works out.
    """
    tower = model.vision
    if tower is None:
        return model
    width = HEADS * HEAD_DIM
    heads = {"num_heads": HEADS, "num_kv_heads": HEADS, "head_dim": HEAD_DIM, "v_head_dim": HEAD_DIM}
    inner = None if tower.layer.mlp is None else tower.layer.mlp.model_copy(update={"intermediate_size": 4 * width})
    layer = tower.layer.model_copy(update={"attention": tower.layer.attention.model_copy(update=heads), "mlp": inner})
    windowed = min(tower.num_windowed_layers, LAYERS - 1)
    small = tower.model_copy(
        update={"hidden_size": width, "num_layers": LAYERS, "layer": layer, "num_windowed_layers": windowed}
    )
    return model_from_data(model_config(model.model_copy(update={"vision": small})), model.name, "--tiny")
