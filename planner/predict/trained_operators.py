"""The operators of a model as it is trained: all of them learn, or adapters beside frozen ones.

Beside a frozen matrix ``W`` [in, out] with an adapter of rank r stand ``A`` [in, r] and ``B`` [r, out]
(``y = x W + s x A B``, arXiv 2106.09685).  Of a frozen matmul the backward pass makes the input gradient only (2 FLOPs
a multiply-add forward, 2 backward), and autograd keeps its input only where an adapter reads it, or where it is the
output of attention, whose kernel keeps it.  The adapter keeps its product with ``A``.

A quantised base is made 16 bit before each product, forward, replayed and backward: ``stored + 2`` bytes a weight, read
and written (operator class ``weight_pass``).  DoRA takes the norm of ``W + s A B`` in each forward pass (arXiv
2402.09353, section 4.3): ``A B`` written and read, ``W`` read, 6 bytes a weight.

Routed experts have no adapters: transformers 5 keeps those of a layer as one tensor, which ``target_modules`` of PEFT
do not reach.  Embedding, head, norms and routers are frozen at 16 bit, unless embedding and head learn too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.model.mixers.tower_cross import TowerCrossSpec
from planner.model.operator import Operator, Shard
from planner.model.operators import layer_operators
from planner.model.spec import ModelSpec
from planner.predict.memory.framework_kept import separate_outputs
from planner.question.problem import Workload
from planner.question.training import AdapterTarget, Training

DORA_BYTES = 6.0
WIDE_BYTES = 2.0
ENDS = frozenset({"token_embedding", "lm_head"})
LINEAR = ("attention", "mlp", "shared_expert")
Part = tuple[AdapterTarget, int]
"""A target and its output features."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """How the two matmuls of an adapter are split over tp, and what its sum is split by."""

    down: Shard
    up: Shard
    joined: Shard


SPLIT: dict[Shard, _Pair] = {
    "column": _Pair("replicated", "column", "features"),
    "row": _Pair("row", "replicated", "sequence"),
    "replicated": _Pair("replicated", "replicated", "sequence"),
}
"""As Megatron-Core's LoRA splits them: the narrow side stays whole, the wide one as its matrix."""


def layer_as_run(model: ModelSpec, kind: int, workload: Workload) -> tuple[Operator, ...]:
    """Operators of a layer kind as the samples have it run.

    A layer that attends to a tower is passed over where no sample has items of it (transformers 5.23
    models/mllama/modeling_mllama.py, MllamaTextModel.forward): its weights are held and do no work.
    """
    operators = layer_operators(model, kind)
    if not passed_over(model, kind, workload):
        return operators
    return tuple(_held(operator) for operator in operators if operator.parameters)


def _held(operator: Operator) -> Operator:
    """Its weights alone: no rows, and nothing that is read, written or kept."""
    still = replace(operator, tokens_per_token=0.0, in_features=0, out_features=0, flops=0.0)
    return replace(still, read_width=0, write_width=0, saved_width=0.0)


def passed_over(model: ModelSpec, kind: int, workload: Workload) -> bool:
    """Whether no sample runs a layer kind: it attends to a tower whose items the samples have none of."""
    mixer = model.layer_kinds[kind].attention
    return isinstance(mixer, TowerCrossSpec) and not workload.items_per_sample(mixer.modality)


def trained_operators(operators: Sequence[Operator], training: Training, *, fused: bool = True) -> tuple[Operator, ...]:
    """Operators of one layer or end as they run when only what ``training`` says learns.

    ``fused``: whether scaling and sum of an adapter are one pass over its output.
    """
    if not training.adapters:
        return tuple(operators)
    found: list[Operator] = []
    for operator in operators:
        if training.ends and operator.name in ENDS:
            found.append(operator)
            continue
        parts = [part for part in adapted_parts(operator, operators) if part[0] in training.targets]
        found += _widened(operator, training)
        found.append(_frozen(operator, training, adapted=bool(parts)))
        for part in parts:
            found += _adapter(operator, part, training, fused=fused)
    return tuple(found)


def reference_operators(operators: Sequence[Operator], training: Training) -> tuple[Operator, ...]:
    """Operators of the reference model: the adapters' own base without them, else a frozen 16-bit copy."""
    shared = training.reference_at == "shared"
    found: list[Operator] = []
    for operator in operators:
        found += _widened(operator, training) if shared else ()
        found.append(replace(operator, frozen=True))
    return tuple(found)


def paired_head(operators: Sequence[Operator], training: Training) -> tuple[Operator, ...]:
    """The head of a reward model: one score a sequence in the place of the vocabulary and its loss."""
    if training.task != "reward":
        return tuple(operators)
    return tuple(
        replace(operator, parameters=operator.in_features, out_features=1, write_width=1)
        if operator.name == "lm_head"
        else operator
        for operator in operators
        if operator.op_class != "cross_entropy"
    )


def adapted_parts(operator: Operator, operators: Sequence[Operator]) -> tuple[Part, ...]:
    """The matrices of one operator by their target words, as transformers names them; none for what is no linear."""
    if operator.op_class != "matmul" or operator.module not in LINEAR:
        return ()
    out, name = operator.out_features, operator.name.removeprefix("shared_")
    if name == "qkv":
        queries, keys, values = separate_outputs(operator, operators)
        return ("q", queries), ("k", keys), ("v", values)
    if name == "up":
        widths = separate_outputs(operator, operators)
        return (("gate", widths[0]), ("up", widths[1])) if len(widths) > 1 else (("up", out),)
    if name == "down":
        return (("down", out),)
    if name == "output_projection":
        return (("o", out),)
    return (("q" if name.startswith("q_") else "k", out),)


def adapter_parameters(operators: Sequence[Operator], training: Training) -> int:
    """Parameters of some operators that learn."""
    return sum(op.parameters for op in trained_operators(operators, training) if not op.frozen)


def _frozen(operator: Operator, training: Training, *, adapted: bool) -> Operator:
    quantised = operator.op_class in ("matmul", "grouped_matmul") and operator.module in (*LINEAR, "moe")
    drops = operator.op_class in ("matmul", "grouped_matmul") or operator.name == "router"
    kept = adapted or not drops or operator.saved_from == "attention_core"
    return replace(
        operator,
        frozen=True,
        stored_bytes=training.stored_bytes if quantised else WIDE_BYTES,
        saved_width=operator.saved_width if kept else 0,
    )


def _widened(operator: Operator, training: Training) -> tuple[Operator, ...]:
    """The pass that makes a quantised matrix 16 bit."""
    quantised = operator.op_class in ("matmul", "grouped_matmul") and operator.module in (*LINEAR, "moe")
    if not quantised or training.stored_bytes == WIDE_BYTES:
        return ()
    return (_weight_pass(operator, f"{operator.name}_dequantisation", training.stored_bytes + WIDE_BYTES, back=True),)


def _weight_pass(operator: Operator, name: str, moved_bytes: float, *, back: bool) -> Operator:
    return Operator(
        name=name,
        op_class="weight_pass",
        module=operator.module,
        shard=operator.shard,
        num_experts=operator.num_experts,
        passed_weights=operator.parameters,
        passed_bytes=moved_bytes,
        passes_back=back,
    )


def _adapter(operator: Operator, part: Part, training: Training, *, fused: bool) -> tuple[Operator, ...]:
    target, out = part
    rank, width, split = training.rank, operator.in_features, SPLIT[operator.shard]
    name = f"{operator.name}_{target}"
    # Of a row-parallel pair the first is split and summed; else it is whole on every rank.
    whole = 0 if split.down == "row" else width * rank
    down = Operator(
        name=f"{name}_adapter_a",
        op_class="matmul",
        module=operator.module,
        shard=split.down,
        parameters=width * rank,
        replicated_parameters=whole,
        in_features=width,
        out_features=rank,
        read_width=width,
        write_width=rank,
    )
    up = Operator(
        name=f"{name}_adapter_b",
        op_class="matmul",
        module=operator.module,
        shard=split.up,
        parameters=rank * out + (out if training.dora else 0),
        replicated_parameters=0 if split.up == "column" else rank * out + (out if training.dora else 0),
        in_features=rank,
        out_features=out,
        read_width=rank,
        write_width=out,
        saved_width=rank,
        saved_shard="sequence",
        saved_from=down.name,
    )
    # The scaled product is written and read once more where scale and sum are two kernels.
    joined = Operator(
        name=f"{name}_adapter_sum",
        op_class="residual",
        module=operator.module,
        shard=split.joined,
        read_width=2 * out if fused else 3 * out,
        write_width=out if fused else 2 * out,
    )
    if not training.dora:
        return down, up, joined
    matrix = replace(operator, parameters=width * out)
    return _weight_pass(matrix, f"{name}_dora_norm", DORA_BYTES, back=False), down, up, joined
