"""The memory of layers that PyTorch runs whole on each device: no pipeline, no tensor parallelism.

Fine-tuning with Hugging Face, torchtune, litgpt and scripts like them.  With ``N`` trained and ``F`` frozen parameters,
``d`` devices that shard (1 without FSDP or ZeRO-3), ``T`` tokens of a micro-batch, ``L`` layers of width ``h`` and a
vocabulary ``V``, the peak of tensors in use is the largest of three moments::

    first backward   W + O + [accumulated] G + L e T h + max(l T V + 6 T h, layer) + gathered
    last backward    W + O + G + layer + gathered
    step             W + G + O + temporary of one moment (PyTorch's foreach AdamW holds a root of it)

``W``, ``G``, ``O``: bytes a parameter by precision (``STATES``), over ``d``; frozen weights at their stored precision.
``e``: bytes of a kept layer input (checkpointing; without it every layer keeps what ``layer`` keeps): 2, or 4 where
the residual stream is fp32.  ``l``: bytes of a logit while the loss runs.  ``layer``: what one layer keeps and the
gradients beside it.  ``gathered``: the ends and one layer in 16 bit, where parameters are sharded.

Nothing is fitted: each byte is a tensor of a named library.  Found on fms-acceleration's rows of Mistral 7B and Llama 3
8B (one to four A100, 127 rows, median error 2 %).  Facts of other libraries (losses in parts, fp32 shards of frozen
weights, DeepSpeed's masters) were written after their rows had been seen; blind were the consumer cards of fsdp_qlora
(24 rows, 8 %), litgpt (26 rows, 12 %) and Qwen's scripts (24 rows, 13 %).
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.evidence.runs.row_training import learned_parameters
from planner.evidence.runs.software import SoftwareDescription
from planner.evidence.runs.truth import TruthRow
from planner.model.parameters import embedding_parameters, head_parameters, total_parameters
from planner.model.spec import LayerSpec, ModelSpec
from planner.question.training import PRETRAIN, STORED_BYTES, Training
from planner.strategy.strategy import Strategy

STATES: dict[str, tuple[float, float, float, float]] = {
    "16bit": (2.0, 2.0, 4.0, 2.0),
    "fp32": (4.0, 4.0, 8.0, 4.0),
    "8bit": (2.0, 2.0, 2.0, 0.0),
    "master": (2.0, 2.0, 12.0, 0.0),
}
"""Bytes a trained parameter: weight, gradient, moments, temporary of the step.  master: 16-bit weights beside an fp32
copy and fp32 moments (DeepSpeed's ZeRO)."""
TRAINED_BYTES = 16.0
"""fp32 weight, gradient and two moments of a trained adapter parameter (PEFT casts them, ``cast_adapter_dtype``)."""
LOGIT_BYTES: dict[str, float] = {"plain": 14.0, "fused": 8.0, "chunked": 0.0}
"""Of one logit while the loss runs.  plain: 16-bit logits, their fp32 copy, the shifted copy, the log-softmax
(transformers 4.45 to 4.48, modeling_llama.py and loss_utils.py).  fused: fp32 logits and their gradient.  chunked: a
part at a time."""
CHUNKS = 8.0
"""Parts of a chunked loss (torchtune CEWithChunkedOutputLoss, num_output_chunks)."""
SCORE_BYTES = 10.0
"""Of one attention score without a fused kernel, while a layer runs: 16-bit scores, fp32 softmax, 16-bit probabilities
and the gradient."""
EAGER_NORM_COPIES = 2.0
PLAIN_ADAM = "16bit"


@dataclass(frozen=True, slots=True)
class Parts:
    """Bytes of the parts of the peak."""

    weights: float
    gradients: float
    optimizer: float
    temporary: float
    kept: float
    loss: float
    layer: float
    gathered: float

    def peak(self, *, accumulates: bool, frees_gradients: bool) -> float:
        """The largest of the three moments."""
        held = self.weights + self.optimizer
        gradients = 0.0 if frees_gradients else self.gradients
        first = held + self.kept + max(self.loss, self.layer) + self.gathered + (gradients if accumulates else 0.0)
        last = held + gradients + self.layer + self.gathered
        return max(first, last, held + gradients + self.temporary)


def whole_layer_peak_bytes(
    row: TruthRow, model: ModelSpec, strategy: Strategy, said: SoftwareDescription, training: Training = PRETRAIN
) -> float:
    """Peak of tensors in use on one device."""
    shards = _shards(strategy)
    parts = _parts(row, model, strategy, said, training)
    offloaded = said.offload == "parameters"
    scale = 0.0 if offloaded else 1.0 / shards
    parts = Parts(
        weights=parts.weights * scale, gradients=parts.gradients * scale, optimizer=parts.optimizer * scale,
        temporary=parts.temporary * scale, kept=parts.kept, loss=parts.loss, layer=parts.layer,
        gathered=parts.gathered if shards > 1 or offloaded else 0.0,
    )  # fmt: skip
    return parts.peak(
        accumulates=strategy.num_microbatches > 1 and not training.adapters,
        frees_gradients=said.step_in_backward == "yes",
    )


def states_of(said: SoftwareDescription, strategy: Strategy) -> str:
    """Precision of trained weights and states.

    FSDP shards fp32 parameters whatever the source's word on one device (accelerate >= 1.0 casts trained parameters up
    before it shards them); one device and DDP train in the weights' own precision, which is 16 bit in these scripts.
    """
    if said.states in ("8bit", "fp32"):
        return said.states
    if said.library == "hf-deepspeed":
        return "master"
    if (
        strategy.zero_stage == 3
        and strategy.dp_shard > 1
        and said.library in ("hf-trainer", "hf-fsdp", "pytorch-fsdp2")
    ):
        return "fp32"
    return "fp32" if said.library == "pytorch-fsdp2" else PLAIN_ADAM


def _shards(strategy: Strategy) -> float:
    return float(strategy.dp_shard) if strategy.zero_stage == 3 else 1.0


def _parts(row: TruthRow, model: ModelSpec, strategy: Strategy, said: SoftwareDescription, training: Training) -> Parts:
    ends = float(embedding_parameters(model) + head_parameters(model))
    whole = float(total_parameters(model))
    tokens = strategy.micro_batch_size * float(row.sequence_length or 0) / strategy.cp
    weight, gradient, moments, temporary = STATES[states_of(said, strategy)]
    if training.adapters:
        quantised = training.stored_bytes < STORED_BYTES["bf16"]
        stored = training.stored_bytes if quantised else _frozen_bytes(said)
        # Of ends that learn too, PEFT keeps the originals (modules_to_save).
        trained = learned_parameters(model, training)
        sizes = (stored * (whole - ends) + _frozen_bytes(said) * ends + TRAINED_BYTES * trained, 0.0, 0.0, 0.0)
        layer_bytes = min(stored, 2.0)
    else:
        sizes = (weight * whole, gradient * whole, moments * whole, temporary * whole)
        layer_bytes = 2.0
    in_layer = (whole - ends) / model.num_layers
    matrix = max(_widest(kind) for kind in model.layer_kinds) * model.hidden_size
    return Parts(
        weights=sizes[0], gradients=sizes[1], optimizer=sizes[2], temporary=sizes[3],
        kept=_kept_bytes(model, strategy, said, tokens),
        loss=loss_bytes(model, said, tokens),
        layer=_layer_bytes(model, said, tokens, float(row.sequence_length or 0)) * _copies(strategy, said)
        + (2.0 * matrix if said.training == "qlora" else 0.0),
        gathered=2.0 * ends + layer_bytes * in_layer,
    )  # fmt: skip


def _frozen_bytes(said: SoftwareDescription) -> float:
    """Bytes of a frozen weight that is not quantised: fp32 where fully_shard's mixed precision casts parameters."""
    return 4.0 if said.library == "pytorch-fsdp2" else 2.0


def _copies(strategy: Strategy, said: SoftwareDescription) -> float:
    """Working sets of a layer at once.

    2 for adapters under FSDP of Hugging Face's trainer: units of one dtype, whose replayed layer is cast once more
    (inferred from rows of fms-acceleration: 0.50 MB a token more on two and four devices than on one, one layer's).
    """
    sharded = strategy.zero_stage == 3 and strategy.dp_shard > 1
    return 2.0 if sharded and said.adapters and said.library == "hf-trainer" else 1.0


def _kept_bytes(model: ModelSpec, strategy: Strategy, said: SoftwareDescription, tokens: float) -> float:
    """Kept for the backward pass by all layers."""
    hidden = float(model.hidden_size)
    if strategy.recompute == "none":
        each = [kept_width(model.layer_kinds[kind], hidden, said) for kind in model.layer_kind_sequence()]
        return 2.0 * tokens * sum(each)
    layers = 2.0 if said.offload == "activations" else float(model.num_layers)
    return layers * residual_bytes(said) * tokens * hidden


def residual_bytes(said: SoftwareDescription) -> float:
    """Bytes of one element of the residual stream.

    4 where bitsandbytes' preparation for training has cast norms and embedding up (PEFT,
    ``prepare_model_for_kbit_training``), unless a plug-in undoes it.
    """
    if said.residual:
        return 4.0 if said.residual == "fp32" else 2.0
    return 4.0 if said.library == "hf-trainer" and said.training == "qlora" else 2.0


def loss_bytes(model: ModelSpec, said: SoftwareDescription, tokens: float) -> float:
    """Logits, their copies, and the final hidden states with their copies."""
    logits, hidden = tokens * model.vocab_size, 12.0 * tokens * model.hidden_size
    if said.loss == "chunked":
        return LOGIT_BYTES["plain"] * logits / CHUNKS + hidden if said.library == "torchtune" else hidden
    each = LOGIT_BYTES["fused" if said.loss == "fused" else "plain"]
    return each * logits + hidden


def _layer_bytes(model: ModelSpec, said: SoftwareDescription, tokens: float, sequence: float) -> float:
    """What the fullest layer keeps while it runs backward, and the gradients beside it."""
    hidden = float(model.hidden_size)
    fullest = 0.0
    for kind in model.layer_kinds:
        width = kept_width(kind, hidden, said) + gradient_width(kind, hidden)
        bytes_ = 2.0 * tokens * width
        if said.attention == "unfused":
            bytes_ += SCORE_BYTES * kind.attention.num_heads * tokens * sequence
        fullest = max(fullest, bytes_)
    return fullest


def kept_width(kind: LayerSpec, hidden: float, said: SoftwareDescription) -> float:
    """16-bit elements a token that a layer keeps: input, two norms, projections before and behind rotation, output."""
    attention = kind.attention
    queries, values = attention.num_heads * attention.head_dim, attention.num_kv_heads * attention.v_head_dim
    fused_point_wise = said.compiled == "yes" or said.kernels in ("liger", "fast-kernels", "te")
    copies = 0.0 if fused_point_wise else 2.0 * EAGER_NORM_COPIES * hidden
    inner, gated = _inner(kind)
    tensors = (3.0 if fused_point_wise else 4.0) if gated else 2.0
    return 4.0 * hidden + copies + 2.0 * queries + values * 3.0 + queries + tensors * inner


def gradient_width(kind: LayerSpec, hidden: float) -> float:
    """Gradients alive at once at the feed-forward: of its output, the product, gate and up."""
    inner, gated = _inner(kind)
    return 2.0 * hidden + (3.0 if gated else 2.0) * inner


def _inner(kind: LayerSpec) -> tuple[float, bool]:
    """Feed-forward features that one token meets."""
    if kind.moe is not None:
        moe = kind.moe
        return float(moe.top_k * moe.expert_intermediate_size + moe.shared_intermediate_size), moe.gated
    assert kind.mlp is not None
    return float(kind.mlp.intermediate_size), kind.mlp.gated


def _widest(kind: LayerSpec) -> float:
    return float(kind.mlp.intermediate_size) if kind.mlp is not None else 0.0
