"""How a model was traced, and what its trace found before the first layer and behind the last."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from planner.model.mixers.traced import TracedOperator, traced_operator
from planner.model.operator import Operator
from profiles.document import Document

UNMET = "unmet"
"""Name of the operator that holds weights which no operation of the trace reads (towers, when only text runs)."""


class TraceSpec(Document):
    """The ends of a traced model, and what built its module."""

    config: str = Field(min_length=2, description="the Hugging Face config that was given, as JSON")
    class_name: str = Field(min_length=1, description="class of transformers")
    auto_class: str = Field(min_length=1, description="automatic class that builds it")
    software: str = Field(min_length=1, description="releases that built and ran the module")
    lengths: tuple[int, ...] = Field(min_length=3, description="sequence lengths of the trace; the last is the check")
    layers: str = Field(min_length=1, description="path of the list of layers in the module")
    checkpoints: bool = Field(description="whether the class can recompute its layers")
    attention: str = Field(description="how attention ran: sdpa, or eager where the class has no other way")
    experts: str = Field(description="how experts ran: batched_mm, or eager where the class has no other way")
    entry: tuple[TracedOperator, ...] = ()
    exit: tuple[TracedOperator, ...] = Field(min_length=1)


def entry_operators(trace: TraceSpec) -> tuple[Operator, ...]:
    """What runs before the first layer; rows of a token table are split as a vocabulary."""
    return tuple(traced_operator(each, "embedding") for each in trace.entry)


def exit_operators(trace: TraceSpec, vocab_size: int) -> tuple[Operator, ...]:
    """What runs behind the last layer: norms, the head, and what it does with logits.  Without the loss."""
    head = [each.name for each in trace.exit if each.op_class == "matmul" and each.out_features == vocab_size][-1:]
    return tuple(
        replace(traced_operator(each, "head"), name="lm_head", shard="vocabulary", replicated_parameters=0)
        if each.name in head
        else traced_operator(each, "norm")
        for each in trace.exit
    )
