"""``train_accelerate.py`` as it trains an encoder-decoder: what differs from the script of decoders, piece by piece.

The source of a sample is synthetic too; the decoder reads the tokens before those that it predicts, so the class shifts
nothing itself (transformers 5.23 modeling_t5.py and modeling_bart.py: ``decoder_input_ids`` beside ``labels``).
"""

from __future__ import annotations

from planner.backends.accelerate.script_pieces import with_pieces

_PIECES: tuple[tuple[str, str], ...] = (
    ("import AutoConfig, AutoModelForCausalLM\n", "import AutoConfig, AutoModelForSeq2SeqLM\n"),
    ("AutoModelForCausalLM.from_pretrained(\n", "AutoModelForSeq2SeqLM.from_pretrained(\n"),
    ("AutoModelForCausalLM.from_config(config,", "AutoModelForSeq2SeqLM.from_config(config,"),
    (
        """        layers = model.base_model.layers if hasattr(model.base_model, "layers") else model.base_model.h
""",
        """        stacks = (model.get_encoder(), model.get_decoder())  # the plan counts the encoder's layers first
        blocks = [stack.block if hasattr(stack, "block") else stack.layers for stack in stacks]
        layers = [layer for stack in blocks for layer in stack]
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
        """                    times = -(-source_length // tokens.shape[1])
                    source = tokens.repeat(1, times)[:, :source_length]  # YOUR source
                    loss = model(
                        input_ids=source,
                        decoder_input_ids=tokens,
                        labels=following,
                        use_cache=False,
                    ).loss
""",
    ),
    (
        """    samples = Samples(vocab_size, plan["sequence_length"])
""",
        """    samples = Samples(vocab_size, plan["sequence_length"])
    source_length = plan.get("source_length") or plan["sequence_length"]
""",
    ),
)
"""Text of the script, each of which stands there once, and what stands in its place."""


def of_encoder_decoder(script: str) -> str:
    """The script of decoders, changed.  Raises ValueError as ``with_pieces``."""
    return with_pieces(script, _PIECES)
