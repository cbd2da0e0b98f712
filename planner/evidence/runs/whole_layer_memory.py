"""The memory of layers that PyTorch runs whole on each device: no pipeline, no tensor parallelism.

Fine-tuning with Hugging Face, torchtune, litgpt and scripts like them.  With ``N`` trained and ``F`` frozen parameters,
``d`` devices that shard (1 without FSDP or ZeRO-3), ``T`` tokens of a micro-batch, ``L`` layers of width ``h`` and a
vocabulary ``V``, the peak of tensors in use is the largest of three moments::

    first backward   W + O + [accumulated] G + L e T h + max(l T V + 6 T h, layer) + gathered
    last backward    W + O + G + layer + gathered
    step             W + G + O + temporary of one moment (PyTorch's foreach AdamW holds a root of it)

``W``, ``G``, ``O``: bytes a parameter by precision (``STATES``), over ``d``; frozen weights at their stored precision.
DistributedDataParallel holds ``G`` a second time, from the start: its buckets are copies (torch, nn/parallel/
distributed.py, gradient_as_bucket_view=False, the default).
``e``: bytes of a kept layer input (checkpointing; without it every layer keeps what ``layer`` keeps): 2, or 4 where
the residual stream is fp32.  ``l``: bytes of a logit while the loss runs.  ``layer``: what one layer keeps and the
gradients beside it.  ``gathered``: the ends and one layer in 16 bit, where parameters are sharded.

Nothing is fitted: each byte is a tensor of a named library.  Found on fms-acceleration's rows of Mistral 7B and Llama 3
8B (one to four A100, 127 rows, median error 2 %).  Facts of other libraries (losses in parts, fp32 shards of frozen
weights, DeepSpeed's masters, what a frozen matrix keeps, trained ends, bucket copies) were read in their code after
their rows had been seen.  Blind were the consumer cards of fsdp_qlora (24 rows, 8 %) and, before those facts, litgpt
(26 rows, 12 %; with them 9 %) and Qwen's scripts (24 rows, 13 %; 4 %).
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
    "paged8bit": (2.0, 2.0, 0.0, 0.0),
    "fused16bit": (2.0, 2.0, 4.0, 0.0),
    "master": (2.0, 2.0, 12.0, 0.0),
}
"""Bytes a trained parameter: weight, gradient, moments, temporary of the step.  master: 16-bit weights beside an fp32
copy and fp32 moments (DeepSpeed's ZeRO).  paged8bit: bitsandbytes' paged moments are managed memory of the driver,
which torch's counter does not see (bitsandbytes, functional.py, get_paged).  fused16bit: AdamW with fused=True, which
torchtune's recipes set (recipes/configs), updates in place."""
STATED_STATES: dict[str, str] = {
    "8bit": "8bit", "paged8bit": "paged8bit", "fp32": "fp32", "sharded16bit": "16bit",
}  # fmt: skip
"""What a row may say of its states and no library changes: plain 16 bit may still be cast up by the library."""
TRAINED_BYTES = 16.0
"""fp32 weight, gradient and two moments of a trained adapter parameter (PEFT casts them, ``cast_adapter_dtype``)."""
TRAINED_END_BYTES = 8.0
"""Of a parameter of the ends that is trained beside the adapters: PEFT trains a copy in the module's own precision
(peft, utils/other.py, ModulesToSaveWrapper), here 16 bit: weight, gradient, two moments; the frozen original stays."""
LOGIT_BYTES: dict[str, float] = {"plain": 14.0, "fused": 8.0, "chunked": 0.0}
"""Of one logit while the loss runs.  plain: 16-bit logits, their fp32 copy, the shifted copy, the log-softmax
(transformers 4.45 to 4.48, modeling_llama.py and loss_utils.py).  fused: fp32 logits and their gradient.  chunked: a
part at a time."""
HELD_LOGIT_BYTES = 16.0
"""Of one logit where the trainer's output holds the fp32 logits through the backward pass: they, the log-softmax, its
gradient and the gradient of its input (PrimeIntellect-ai/prime-rl@a1271501b, trainer/sft/train.py and
trainer/models/layers/lm_head.py, cast_float_and_contiguous)."""
CHUNKS = 8.0
"""Parts of a chunked loss (torchtune CEWithChunkedOutputLoss, num_output_chunks)."""
SCORE_BYTES = 10.0
"""Of one attention score without a fused kernel, while a layer runs: 16-bit scores, fp32 softmax, 16-bit probabilities
and the gradient."""
EAGER_NORM_COPIES = 2.0
"""16-bit elements that an eager RMS norm keeps beside its input: an fp32 copy instead of it, and the normalized input
before the weight.  ``FP32_NORM_COPIES``: the normalized input in fp32, too (Lightning-AI/litgpt, litgpt/model.py,
RMSNorm); ``FROZEN_NORM_COPIES``: without it, because nothing learns from it.  A layer norm is one kernel of PyTorch's,
which keeps its input alone."""
FP32_NORM_COPIES = 3.0
FROZEN_NORM_COPIES = 1.0
LIVE_BYTES = 2.0e9
"""Gathered parameters that DeepSpeed's ZeRO-3 leaves whole: stage3_max_live_parameters, 1e9 of 16 bit by default
(deepspeed, runtime/zero/config.py)."""
PLAIN_ADAM = "16bit"
OWN_ADAPTERS = ("torchtune", "litgpt")
"""Libraries with adapters of their own, in the run's precision; PEFT's are fp32 (``TRAINED_BYTES``)."""


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
        gathered=_gathered_bytes(parts, model, said) if shards > 1 or offloaded else 0.0,
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
    if said.states in STATED_STATES:
        return STATED_STATES[said.states]
    if said.library == "hf-deepspeed":
        return "master"
    if said.library == "torchtune":
        return "fused16bit"
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
        learned = learned_parameters(model, training)
        each = weight + gradient + moments if said.library in OWN_ADAPTERS else TRAINED_BYTES
        learns = each * learned.adapters + TRAINED_END_BYTES * learned.ends
        sizes = (stored * (whole - ends) + _frozen_bytes(said) * ends + learns, 0.0, 0.0, 0.0)
        layer_bytes = min(stored, 2.0)
    else:
        held = weight + gradient * _buckets(strategy, said)
        sizes = (held * whole, gradient * whole, moments * whole, temporary * whole)
        layer_bytes = 2.0
    in_layer = (whole - ends) / model.num_layers
    matrix = max(_widest(kind) for kind in model.layer_kinds) * model.hidden_size
    return Parts(
        weights=sizes[0], gradients=sizes[1], optimizer=sizes[2], temporary=sizes[3],
        kept=_kept_bytes(model, strategy, said, training, tokens),
        loss=loss_bytes(model, said, tokens),
        layer=_layer_bytes(model, said, tokens, float(row.sequence_length or 0)) * _copies(strategy, said)
        + (2.0 * matrix if said.training == "qlora" else 0.0),
        gathered=2.0 * ends + layer_bytes * in_layer,
    )  # fmt: skip


def _buckets(strategy: Strategy, said: SoftwareDescription) -> float:
    """Copies of the gradients: one under DistributedDataParallel; thunder has a data parallelism of its own."""
    return 1.0 if strategy.zero_stage == 0 and strategy.dp > 1 and said.compiled != "thunder" else 0.0


def _gathered_bytes(parts: Parts, model: ModelSpec, said: SoftwareDescription) -> float:
    """Parameters that are whole at once: the ends and a layer.

    torchtune shards the ends as units of their own (recipes, custom_sharded_layers), beside a layer and the next one;
    DeepSpeed's ZeRO-3 keeps what it has gathered up to a limit.
    """
    ends = 2.0 * float(embedding_parameters(model) + head_parameters(model))
    if said.library == "torchtune":
        layer = parts.gathered - ends
        return layer + max(layer, ends / 2.0)
    if said.library == "hf-deepspeed":
        return max(parts.gathered, min(LIVE_BYTES, 2.0 * total_parameters(model)))
    return parts.gathered


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


def _kept_bytes(
    model: ModelSpec, strategy: Strategy, said: SoftwareDescription, training: Training, tokens: float
) -> float:
    """Kept for the backward pass by all layers."""
    hidden = float(model.hidden_size)
    if strategy.recompute == "none":
        adapted = training.targets if training.kind == "lora" else None
        each = [kept_width(model.layer_kinds[kind], hidden, said, adapted) for kind in model.layer_kind_sequence()]
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
    if said.loss in ("chunked", "log-probabilities"):
        return LOGIT_BYTES["plain"] * logits / CHUNKS + hidden if said.library == "torchtune" else hidden
    if said.loss == "fused":
        return LOGIT_BYTES["fused"] * logits + hidden
    held = said.library == "pytorch-fsdp2"
    return (HELD_LOGIT_BYTES if held else LOGIT_BYTES["plain"]) * logits + hidden


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


def kept_width(
    kind: LayerSpec, hidden: float, said: SoftwareDescription, adapted: tuple[str, ...] | None = None
) -> float:
    """16-bit elements a token that a layer keeps: input, two norms, projections before and behind rotation, output.

    ``adapted``: matrices with adapters beside frozen weights (None = all keep their input).  The input of a frozen
    matrix is kept for nothing; a normalized input, for the norm's own weight alone.  bitsandbytes' 4-bit matmul keeps
    its input whether or not anything learns from it (autograd/_functions.py, MatMul4Bit, until 0.42).
    """
    attention = kind.attention
    queries, values = attention.num_heads * attention.head_dim, attention.num_kv_heads * attention.v_head_dim
    inner, gated = _inner(kind)
    tensors = (3.0 if _fuses(said) else 4.0) if gated else 2.0
    width = 4.0 * hidden + norm_copies(kind, said) * hidden
    width += 2.0 * queries + values * 3.0 + queries + tensors * inner
    if attention.qk_norm != "none":
        width += (1.0 if _fuses(said) else 1.0 + EAGER_NORM_COPIES) * (queries + values)
    if said.library == "litgpt":
        # Keys and values are repeated for every head before attention (litgpt/model.py, repeat_interleave).
        width += 2.0 * (queries - values)
    if kind.moe is not None:
        width += ROUTED_COPIES * kind.moe.top_k * hidden
    if kind.parallel_residual:
        width -= hidden
    if adapted is None:
        return width
    width -= 0.0 if {"gate", "up"} & set(adapted) else hidden
    return width - (0.0 if "down" in adapted else inner)


ROUTED_COPIES = 2.0
"""Hidden-wide rows that a mixture keeps for each chosen expert of a token: what is dispatched, and what comes back to
be weighted."""


def norm_copies(kind: LayerSpec, said: SoftwareDescription) -> float:
    """Hidden-wide 16-bit elements that the norms of a layer keep beside their inputs."""
    if _fuses(said) or kind.norm != "rms":
        return 0.0
    if said.adapters:
        return 2.0 * FROZEN_NORM_COPIES
    return 2.0 * (FP32_NORM_COPIES if said.library == "litgpt" else EAGER_NORM_COPIES)


def _fuses(said: SoftwareDescription) -> bool:
    """Whether point-wise operators are fused, by a compiler or by hand."""
    return said.compiles or said.kernels in ("liger", "fast-kernels", "te")


def gradient_width(kind: LayerSpec, hidden: float) -> float:
    """Gradients alive at once at the feed-forward: of its output, the product, gate and up."""
    inner, gated = _inner(kind)
    routed = ROUTED_COPIES * kind.moe.top_k * hidden if kind.moe is not None else 0.0
    return 2.0 * hidden + (3.0 if gated else 2.0) * inner + routed


def _inner(kind: LayerSpec) -> tuple[float, bool]:
    """Feed-forward features that one token meets."""
    if kind.moe is not None:
        moe = kind.moe
        return float(moe.top_k * moe.expert_intermediate_size + moe.shared_intermediate_size), moe.gated
    assert kind.mlp is not None
    return float(kind.mlp.intermediate_size), kind.mlp.gated


def _widest(kind: LayerSpec) -> float:
    return float(kind.mlp.intermediate_size) if kind.mlp is not None else 0.0
