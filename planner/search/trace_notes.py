"""What a plan assumes about a model that was traced from its module."""

from __future__ import annotations

from planner.model.operators import embedding_operators, layer_operators
from planner.model.spec import ModelSpec
from planner.model.trace import UNMET, TraceSpec


def traced_by(trace: TraceSpec) -> str:
    """Class, releases and lengths, for the provenance of a plan."""
    lengths = ", ".join(f"{length:,}" for length in sorted(trace.lengths))
    return f"{trace.class_name} ({trace.software}), run at {lengths} tokens"


def trace_notes(model: ModelSpec) -> tuple[str, ...]:
    """Sentences about a traced model; none for one that a table describes."""
    trace = model.traced
    if trace is None:
        return ()
    notes = [
        f"the model is traced: operators, parameters and kept activations are those of {traced_by(trace)} on the meta"
        " device; layers are not cut (tp = cp = ep = 1) and are recomputed whole or not at all; no measured run of a"
        " traced model stands behind the interval"
    ]
    if trace.attention == "eager":
        notes.append(
            f"{trace.class_name} multiplies attention scores itself: they are kept and all of them computed, the masked"
            " ones too; the time is that of a fused kernel for as many FLOPs, and its softmax is not counted"
        )
    ends = embedding_operators(model)
    unmet = sum(each.parameters for each in ends if each.name == UNMET)
    for run in model.layer_runs:
        unmet += run.count * sum(each.parameters for each in layer_operators(model, run.kind) if each.name == UNMET)
    if unmet:
        notes.append(f"{unmet:,} parameters are met by no token of text: they hold memory and do no work")
    return tuple(notes)
