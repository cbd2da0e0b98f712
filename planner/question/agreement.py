"""What of a workload does not go together with the model, as one list: every road to a question asks it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.spec import ModelSpec
from planner.question.routing import of_other_experts
from planner.question.sample import of_a_sample
from planner.question.source import beside_a_tower, beside_an_encoder, of_a_denoiser
from planner.question.training import EVERY_TOWER
from planner.question.work_kind import COUNTS, ITEMS

if TYPE_CHECKING:
    from planner.question.problem import Workload

HINTS = {
    "/workload/routing": "give one count for each expert of a layer, or kind zipf, even",
    "/workload/source_length": "leave source_length out",
    "/workload/sample": "give the frames, height and width of a sample that the model takes, or leave it out",
    "/workload/sequence_length": "give the tokens that a sample makes, text among them where it is in the sequence",
    "/workload/sequences": "leave the lengths of documents out: every sequence then counts whole",
    "/workload/training": "train all weights: leave --training out, or full",
    "/workload/training/frozen_towers": "freeze towers that the model has",
    "/workload/images_per_sample": "leave images_per_sample out, or name a model that reads images",
    "/workload/audio_clips_per_sample": "leave audio_clips_per_sample out, or name a model that hears audio",
    "/workload/image_counts": "say a number for every sample: images_per_sample",
    "/workload/audio_clip_counts": "say a number for every sample: audio_clips_per_sample",
}


def contradictions(model: ModelSpec, workload: Workload) -> tuple[tuple[str, str], ...]:
    """Pairs of JSON pointer and message; empty where model and workload agree."""
    training = workload.trained
    routed = of_other_experts(workload.routing, model)
    said = [
        f"/workload/routing: {routed}" if routed else None,
        None
        if model.denoiser
        else beside_an_encoder(model.encoder, workload.source_length, workload.sequences, training),
        beside_a_tower(model, workload.sequences, training),
        of_a_denoiser(model.denoiser, workload),
        of_a_sample(model, workload),
    ]
    if model.crossed_modality is not None and workload.counts_of(model.crossed_modality) is not None:
        said.append(
            f"/workload/{COUNTS[model.crossed_modality]}: layers attend to the tower, whose tokens are then as many in"
            " every sample"
        )
    known = {tower.modality for tower in model.towers}
    frozen = training.frozen_towers
    absent = [modality for modality in frozen if modality not in known]
    if absent and not (known and frozen == EVERY_TOWER):
        said.append(f"/workload/training/frozen_towers: {model.name} has no {' or '.join(absent)} tower")
    for modality, field in ITEMS.items():
        if workload.items_per_sample(modality) and modality not in known:
            where = field if workload.counts_of(modality) is None else COUNTS[modality]
            said.append(f"/workload/{where}: {model.name} has no {modality} tower")
    return tuple((found.partition(": ")[0], found.partition(": ")[2]) for found in said if found)
