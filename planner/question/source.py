"""What a question about an encoder-decoder may say of the encoder's sequence."""

from __future__ import annotations

from planner.model.encoder import EncoderSpec
from planner.question.sequences import Sequences
from planner.question.training import Training


def beside_an_encoder(
    encoder: EncoderSpec | None, asked: int | None, documents: Sequences | None, training: Training
) -> str | None:
    """What does not fit between the model's encoder and the workload, with its JSON pointer; None where all does."""
    if encoder is None:
        return None if asked is None else "/workload/source_length: the model has no encoder that reads a source"
    if documents is not None:
        return "/workload/sequences: lengths of documents are modelled for one sequence, not for a source beside it"
    if training.adapters or training.task != "language_model":
        return "/workload/training: of an encoder-decoder, training of all weights as a language model is modelled"
    fixed = encoder.sequence_length
    if fixed is not None and asked not in (None, fixed):
        return f"/workload/source_length: the encoder of this model always reads {fixed} tokens, not {asked}"
    return None
