"""The number of learned scalars of a model, in all and for one token.

Everything is summed over the operators of ``planner.model.operators``, so cost, memory and parameter count cannot
disagree.  Checked to the last parameter against the ``transformers`` classes (tests/oracle).
"""

from __future__ import annotations

from collections.abc import Iterable

from planner.model.mlp_operators import routed_rows
from planner.model.operator import Operator
from planner.model.operators import (
    embedding_operators,
    head_operators,
    layer_operators,
    mtp_operators,
    tower_operators,
)
from planner.model.spec import LayerSpec, ModelSpec, Tower
from planner.model.trace import UNMET

_UNMET = ("experts_unused", "image_experts")
"""Operators whose weights no token of text meets."""


def sum_parameters(operators: Iterable[Operator]) -> int:
    """Learned scalars of some operators, all experts included."""
    return sum(op.parameters for op in operators)


def embedding_parameters(spec: ModelSpec) -> int:
    """Token table, learned positions, embedding norm and resizing projection."""
    return sum_parameters(embedding_operators(spec))


def head_parameters(spec: ModelSpec) -> int:
    """Vocabulary matmul and its bias; 0 when tied to the token table.  Without the final norm."""
    return sum_parameters(op for op in head_operators(spec) if op.module == "head")


def final_norm_parameters(spec: ModelSpec) -> int:
    """Final norm, and the resizing projection before the head where there is one."""
    return sum_parameters(op for op in head_operators(spec) if op.module != "head")


def layer_parameters(spec: ModelSpec, kind: int) -> int:
    """One transformer layer of kind ``kind``, all experts included."""
    return sum_parameters(layer_operators(spec, kind))


def mtp_parameters(spec: ModelSpec) -> int:
    """All multi-token-prediction modules: projection, norms and layer; embedding and head are the main model's."""
    if spec.mtp is None:
        return 0
    module = sum_parameters(mtp_operators(spec)) + layer_parameters(spec, spec.mtp.kind)
    return spec.mtp.num_layers * module


def tower_parameters(tower: Tower) -> int:
    """One tower with its front end and projector."""
    return sum(run.count * sum_parameters(tower_operators(run)) for run in tower.runs) + tower.extra_parameters


def towers_parameters(spec: ModelSpec) -> int:
    """All towers in front of the language model; 0 without any."""
    return sum(tower_parameters(tower) for tower in spec.towers)


def total_parameters(spec: ModelSpec) -> int:
    """Learned scalars of the model as its reference class builds it.

    Multi-token-prediction modules count only where the reference holds them (``MtpSpec.count_in_parameters``; the
    ``transformers`` classes do not); training them takes ``mtp_parameters`` more.
    """
    layers = sum(run.count * layer_parameters(spec, run.kind) for run in spec.layer_runs)
    ends = embedding_parameters(spec) + final_norm_parameters(spec) + head_parameters(spec)
    mtp = mtp_parameters(spec) if spec.mtp is not None and spec.mtp.count_in_parameters else 0
    return layers + ends + mtp + towers_parameters(spec)


def active_parameters(spec: ModelSpec) -> int:
    """Learned scalars that one token meets: as ``total_parameters``, with ``top_k`` of the routed experts a layer."""
    idle = sum(run.count * _idle_parameters(spec, run.kind) for run in spec.layer_runs)
    if spec.traced is not None:
        idle += sum(_idle_part(op) for op in embedding_operators(spec))
    if spec.mtp is not None and spec.mtp.count_in_parameters:
        idle += spec.mtp.num_layers * _idle_parameters(spec, spec.mtp.kind)
    return total_parameters(spec) - idle


def _idle_parameters(spec: ModelSpec, kind: int) -> int:
    layer: LayerSpec = spec.layer_kinds[kind]
    if spec.traced is not None:
        return sum(_idle_part(op) for op in layer_operators(spec, kind))
    if layer.moe is None:
        return 0
    in_attention = [op for op in layer_operators(spec, kind) if op.op_class == "matmul" and op.num_experts]
    attention = sum(op.parameters - op.replicated_parameters for op in in_attention)
    attention = attention // layer.moe.num_experts * (layer.moe.num_experts - layer.moe.top_k)
    routed = sum_parameters(op for op in layer_operators(spec, kind) if op.op_class == "grouped_matmul")
    met = min(round(routed_rows(layer.moe)), layer.moe.num_experts)
    unused = sum_parameters(op for op in layer_operators(spec, kind) if op.name in _UNMET)
    return routed // layer.moe.num_experts * (layer.moe.num_experts - met) + unused + attention


def _idle_part(operator: Operator) -> int:
    """Of a traced operator: weights that no token meets, and those of experts that a token is not sent to."""
    if operator.op_class == "grouped_matmul":
        return operator.parameters - round(
            operator.parameters * min(operator.tokens_per_token / operator.num_experts, 1)
        )
    return operator.parameters if operator.name == UNMET else 0


def parameters_by_module(spec: ModelSpec) -> dict[str, int]:
    """Learned scalars by module (embedding, attention, norm, mlp, moe, shared_expert, head, vision, audio, mtp).

    The values sum to ``total_parameters``.
    """
    totals: dict[str, int] = {}

    def add(operators: Iterable[Operator], times: int) -> None:
        for op in operators:
            module = "attention" if op.module == "attention_core" else op.module
            totals[module] = totals.get(module, 0) + times * op.parameters

    add(embedding_operators(spec), 1)
    for run in spec.layer_runs:
        add(layer_operators(spec, run.kind), run.count)
    add(head_operators(spec), 1)
    totals |= {tower.modality: tower_parameters(tower) for tower in spec.towers}
    if spec.mtp is not None and spec.mtp.count_in_parameters:
        totals["mtp"] = mtp_parameters(spec)
    return {module: count for module, count in totals.items() if count}


def weight_tensors(spec: ModelSpec) -> int:
    """How many weights (tensors) the model has, a bias counted with its matrix."""

    def tensors(operators: Iterable[Operator]) -> int:
        return sum(operator.parameters > 0 for operator in operators)

    layers = sum(run.count * tensors(layer_operators(spec, run.kind)) for run in spec.layer_runs)
    return layers + tensors(embedding_operators(spec)) + tensors(head_operators(spec))
