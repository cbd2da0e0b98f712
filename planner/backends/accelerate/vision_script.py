"""``train_accelerate.py`` as it trains a model behind a vision tower: what differs from the script of decoders.

Images are synthetic too: each stands as its marks at the beginning of the sample, and its patches go through the tower,
which every rank has whole or as its part of FSDP's shards.  The class turns marks into rotary positions of its own
(transformers 5.23 models/qwen2_5_vl/modeling_qwen2_5_vl.py:1117, ``mm_token_type_ids``).
"""

from __future__ import annotations

from planner.backends.accelerate.script_pieces import with_pieces

_PIECES: tuple[tuple[str, str], ...] = (
    ("import AutoConfig, AutoModelForCausalLM\n", "import AutoConfig, AutoModelForImageTextToText\n"),
    ("AutoModelForCausalLM.from_pretrained(\n", "AutoModelForImageTextToText.from_pretrained(\n"),
    ("AutoModelForCausalLM.from_config(config,", "AutoModelForImageTextToText.from_config(config,"),
    (
        """def initialise(model, seed, gathered):
""",
        '''def with_images(tokens, following, plan, config):
    """YOUR images: what the class takes beside tokens, the marks of a sample's images at its beginning."""
    images, marks = plan["images"], config.image_token_id
    # A token that means an image, or a place where a video begins, is no text.
    special = (marks, config.video_token_id, config.vision_start_token_id)
    tokens, following = tokens.clone(), following.clone()
    for mark in special:
        tokens[tokens == mark] = 0
        following[following == mark] = 0
    kinds = torch.zeros_like(tokens)
    for index in range(images["per_sample"]):
        first = index * (images["tokens"] + 1) + 1  # a token of text between two images keeps them apart
        kinds[:, first : first + images["tokens"]] = 1
        following[:, first - 1 : first - 1 + images["tokens"]] = -100  # nobody predicts an image
    tokens[kinds == 1] = marks
    vision, side = config.vision_config, int(images["patches"] ** 0.5)
    number = len(tokens) * images["per_sample"]
    features = vision.in_channels * vision.temporal_patch_size * vision.patch_size**2
    picture = torch.linspace(-1.0, 1.0, images["patches"] * features).reshape(images["patches"], features)
    inputs = {
        "input_ids": tokens,
        "mm_token_type_ids": kinds,
        "pixel_values": picture.repeat(number, 1).to(tokens.device),
        "image_grid_thw": torch.tensor([[1, side, side]] * number, device=tokens.device),
    }
    return inputs, following


def initialise(model, seed, gathered):
''',
    ),
    (
        """        layers = model.base_model.layers if hasattr(model.base_model, "layers") else model.base_model.h
""",
        """        for block in model.base_model.visual.blocks:  # the plan recomputes layers of the language model
            block.gradient_checkpointing = False
        layers = model.base_model.language_model.layers
""",
    ),
    (
        """    model = with_adapters(model, training)
""",
        """    if training.get("frozen_towers"):
        model.base_model.visual.requires_grad_(False)
""",
    ),
    (
        """    vocab_size, reference = model.config.vocab_size, reference_of(plan, accelerator, seed)
""",
        """    config = model.config
    vocab_size, reference = config.get_text_config().vocab_size, reference_of(plan, accelerator, seed)
""",
    ),
    (
        """                    loss = model(
                        input_ids=tokens,
                        position_ids=positions,
                        labels=following,
                        shift_labels=following,
                        use_cache=False,
                    ).loss
""",
        """                    inputs, wanted = with_images(tokens, following, plan, config)
                    loss = model(**inputs, labels=wanted, shift_labels=wanted, use_cache=False).loss
""",
    ),
)
"""Text of the script, each of which stands there once, and what stands in its place."""


def of_vision_language(script: str) -> str:
    """The script of decoders, changed.  Raises ValueError as ``with_pieces``."""
    return with_pieces(script, _PIECES)
