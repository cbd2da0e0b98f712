"""What a question may say of a second sequence, which cross-attention sees: an encoder's, or a tower's tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.denoiser import DenoiserSpec
from planner.model.encoder import EncoderSpec
from planner.model.flops import source_tokens
from planner.model.spec import ModelSpec
from planner.question.sequences import Sequences
from planner.question.training import Training

if TYPE_CHECKING:
    from planner.question.problem import Workload


def source_of(model: ModelSpec, workload: Workload) -> int:
    """Tokens of the second sequence: the encoder's, a tower's items of one sample, or a denoiser's text.

    As many as the decoder's own where no layer sees another sequence; 1 where a sample has no items.
    """
    for tower in model.towers:
        if tower.modality == model.crossed_modality:
            return max(round(workload.items_per_sample(tower.modality) * tower.tokens_per_item), 1)
    return source_tokens(model, workload.sequence_length, workload.source_length)


def beside_a_tower(model: ModelSpec, documents: Sequences | None, training: Training) -> str | None:
    """What does not fit between layers that attend to a tower and the workload, with its JSON pointer."""
    if model.crossed_modality is None:
        return None
    if model.crossed_modality not in {tower.modality for tower in model.towers}:
        return f"/model: layers attend to a tower for {model.crossed_modality}, and the model has none"
    if documents is not None:
        return "/workload/sequences: lengths of documents are not modelled where layers attend to a tower"
    if training.adapters or training.task != "language_model":
        return "/workload/training: where layers attend to a tower, training of all weights is modelled"
    return None


def of_a_denoiser(denoiser: DenoiserSpec | None, workload: Workload) -> str | None:
    """What does not fit between a denoiser and the workload, with its JSON pointer; None where all does."""
    if denoiser is None:
        return None
    training, text = workload.trained, workload.source_length or denoiser.text_tokens
    if workload.sequences is not None:
        return "/workload/sequences: a denoiser's samples are latents of one size, not documents"
    if training.adapters or training.task != "language_model":
        return "/workload/training: of a denoiser, training of all weights by its own loss is modelled"
    if denoiser.text_in_sequence and text >= workload.sequence_length:
        return f"/workload/sequence_length: it counts {text} text tokens and the latent tokens of a sample"
    return None


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
