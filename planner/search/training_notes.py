"""What a plan assumes about the way its model is trained."""

from __future__ import annotations

from planner.question.training import Training

REFERENCE = {
    "resident": "the reference model is on the devices in 16 bit, sharded as the policy, and runs forward each time",
    "offloaded": "the reference model is in host memory and crosses the host link for each forward pass",
    "shared": "the reference is the base without its adapters: one more forward pass, no memory",
    "precomputed": "log-probabilities of the reference are in the data: no reference model runs",
}


def training_notes(training: Training) -> tuple[str, ...]:
    """Nothing for pre-training and full fine-tuning by the usual loss."""
    notes = []
    if training.adapters:
        notes.append(
            f"{training.words()}: gradients, optimizer states and their traffic are of adapters alone; frozen matrices"
            f" of layers take {training.stored_bytes:.3g} bytes a weight, embedding, head and norms 2; adapters have no"
            " dropout"
        )
    elif training.task != "language_model" or training.frozen_towers:
        notes.append(f"training: {training.words()}")
    if training.frozen_towers:
        towers = " and ".join(training.frozen_towers)
        notes.append(f"frozen towers ({towers}) and their projectors: 2 bytes a weight, forward passes alone")
    if training.sequences_per_sample > 1:
        notes.append("a sample is a chosen and a rejected sequence; tokens a second count both")
    where = training.reference_at
    return (*notes, REFERENCE[where]) if where is not None else tuple(notes)
