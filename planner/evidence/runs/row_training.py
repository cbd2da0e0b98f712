"""How the model of a measured run was trained, in the words of a workload.

Notes name rank and matrices ("LoRA r=16 on q,k,v,o", "rank 64 on all linear layers"); a row that does not is taken at
rank 16 on the matrices that its software adapts by default.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from planner.evidence.runs.software import SoftwareDescription
from planner.model.operators import embedding_operators, head_operators, layer_operators
from planner.model.spec import ModelSpec
from planner.predict.trained_operators import adapter_parameters
from planner.question.training import EVERY_TARGET, AdapterTarget, BaseStorage, Training

RANK = re.compile(r"\br\s?=\s?(\d+)|\brank (\d+)", re.IGNORECASE)
USUAL_RANK = 16
TARGETS: tuple[tuple[str, tuple[AdapterTarget, ...]], ...] = (
    (r"all linear|c_attn/c_proj/w1/w2", EVERY_TARGET),
    (r"\(q,v,o \+ MLP\)", ("q", "v", "o", "gate", "up", "down")),
    (r"q,k,v,o|linear_qkv\+linear_proj", ("q", "k", "v", "o")),
    (r"\(q,v\)", ("q", "v")),
)
"""Words of notes and the matrices that they mean; first match wins."""
ENDS_TOO = re.compile(r"embedding and output layer trained", re.IGNORECASE)
BASES: dict[str, tuple[BaseStorage, bool]] = {
    "nf4": ("nf4", False),
    "nf4-dq": ("nf4", True),
    "gptq": ("gptq", True),
    "int8": ("int8", True),
}


def training_of_row(
    notes: str, said: SoftwareDescription, usual: tuple[AdapterTarget, ...] = EVERY_TARGET
) -> Training | None:
    """What learns in a run, on the ``usual`` matrices unless notes name others; None where it has no adapters."""
    if not said.adapters:
        return None
    match = RANK.search(notes)
    base, doubly = BASES.get(said.quantization, ("nf4", True)) if said.training == "qlora" else ("bf16", True)
    return Training(
        kind="lora" if base == "bf16" else "qlora",
        rank=int(next(group for group in match.groups() if group)) if match else USUAL_RANK,
        targets=next((found for words, found in TARGETS if re.search(words, notes)), usual),
        base=base,
        double_quantization=doubly,
        ends=ENDS_TOO.search(notes) is not None,
    )


class Learned(NamedTuple):
    """Parameters of the whole model that learn beside a frozen base: of adapters, and of the ends."""

    adapters: float
    ends: float


def learned_parameters(model: ModelSpec, training: Training) -> Learned:
    """What learns in a run of adapters."""
    layers = [layer_operators(model, kind) for kind in range(len(model.layer_kinds))]
    each = [adapter_parameters(operators, training) for operators in layers]
    ends = (embedding_operators(model), head_operators(model))
    return Learned(
        float(sum(each[kind] for kind in model.layer_kind_sequence())),
        float(sum(adapter_parameters(operators, training) for operators in ends)),
    )
