"""The models that no decoder block of MaxText builds, or none as their reference computes them."""

from __future__ import annotations

from planner.backends.maxtext.decoder_blocks import BLOCKS, DecoderBlock, decoder_block, leading_dense_layers
from planner.backends.maxtext.version import MAXTEXT_VERSION, TYPES
from planner.backends.rules.packed_sequences import BOTH, packed_sequences
from planner.backends.rules.rule import RuleInput, SpaceRule, mixtures, used_kinds
from planner.backends.rules.training_kinds import training_kinds
from planner.model.spec import LayerSpec, ModelSpec, TokenMixer

_DECODERS = f"maxtext {MAXTEXT_VERSION} layers/nnx_decoders.py:1222-1250"
_MODELS = f"maxtext {MAXTEXT_VERSION} configs/models/*.yml"


def _family(given: RuleInput) -> str | None:
    if decoder_block(given.model) is None:
        return f"no decoder block builds {given.model.family}; there are blocks for {', '.join(BLOCKS)}"
    return None


def _parts(given: RuleInput) -> str | None:
    model = given.model
    if model.towers:
        return f"{model.towers[0].called} is not emitted"
    if model.embedding_size not in (None, model.hidden_size):
        return f"an embedding of width {model.embedding_size} on layers of width {model.hidden_size} is not built"
    if model.embedding_norm or not model.final_norm or model.head_bias:
        return "a norm after the embedding, a missing final norm or a bias on the head is not built"
    if model.mtp is not None and not model.has_experts:
        return "multi-token prediction is emitted for models with experts only"
    return None


def _attention(given: RuleInput) -> str | None:
    block = decoder_block(given.model)
    if block is None:
        return None
    for kind in used_kinds(given.model):
        message = _attention_problem(kind.attention, block)
        if message:
            return message
    return _windows(given.model, block, given.workload.sequence_length)


def _attention_problem(attention: TokenMixer, block: DecoderBlock) -> str | None:
    if (attention.kind == "mla") != block.latent:
        return f"block {block.name} has {'latent' if block.latent else 'no latent'} attention"
    if attention.qkv_bias != block.qkv_bias or attention.output_bias != block.linear_bias:
        return f"block {block.name} has {'a' if block.qkv_bias else 'no'} bias on queries, keys and values"
    if (attention.qk_norm == "per_head") != block.qk_norm or attention.qk_norm == "full_width":
        return f"block {block.name} has {'a' if block.qk_norm else 'no'} norm on the queries and keys of a head"
    if attention.sinks or (attention.logit_softcap is not None) != block.softcap or not attention.causal:
        return f"attention sinks, a cap on logits or attention without a mask is not in block {block.name}"
    if attention.v_head_dim != attention.head_dim and not block.latent:
        return "values of another width than queries are built for latent attention only"
    return None


def _windows(model: ModelSpec, block: DecoderBlock, sequence_length: int) -> str | None:
    windows = [model.layer_kinds[kind].attention.sliding_window for kind in model.layer_kind_sequence()]
    cut = [window is not None and window < sequence_length for window in windows]
    if not block.window_period:
        return f"block {block.name} sees all tokens; the model has windows shorter than a sample" if any(cut) else None
    expected = [(index + 1) % block.window_period != 0 for index in range(len(windows))]
    if [window is not None for window in windows] != expected:
        return (
            f"block {block.name} has every {block.window_period}th layer without a window; the model is cut otherwise"
        )
    return None


def _layers(given: RuleInput) -> str | None:
    block = decoder_block(given.model)
    if block is None:
        return None
    for kind in used_kinds(given.model):
        message = _layer_problem(kind, block)
        if message:
            return message
    if len({kind.mlp for kind in used_kinds(given.model) if kind.mlp}) > 1:
        return "dense layers of several widths are not built"
    if block.name == "gemma2" and given.model.num_layers % 2:
        return "gemma2's layers come in pairs; the model has an odd number"
    return None


def _layer_problem(kind: LayerSpec, block: DecoderBlock) -> str | None:
    if (kind.mlp is None) == (kind.moe is None):
        return "a layer must have exactly one of MLP and experts"
    if kind.parallel_residual or kind.num_norms != block.num_norms or kind.norm != block.norm:
        return f"block {block.name} has {block.num_norms} {block.norm} norms a layer, one branch after the other"
    if kind.norm_placement != "pre":
        return "norms are built in front of the branches"
    if kind.mlp and (kind.mlp.gated != block.gated or kind.mlp.bias != block.linear_bias):
        return f"block {block.name} has {'a gated' if block.gated else 'a plain'} MLP with fixed biases"
    if kind.mlp and block.experts and not block.first_dense:
        return f"block {block.name} has experts in every layer"
    return "experts are not in this block" if kind.moe and not block.experts else None


def _experts(given: RuleInput) -> str | None:
    block, model = decoder_block(given.model), given.model
    moes = mixtures(model)
    if block is None or not moes:
        return None
    if len(moes) > 1:
        return "layers with different mixtures of experts are not built"
    moe = moes[0]
    if not moe.gated or moe.expert_bias or moe.shared_bias or moe.shared_gate:
        return "experts without gate, with bias, or a gate on the shared experts are not built"
    if block.shared_experts:
        if moe.shared_intermediate_size % moe.expert_intermediate_size:
            return "the shared experts must be a whole number of experts wide"
        kinds = [model.layer_kinds[kind].moe is not None for kind in model.layer_kind_sequence()]
        if not all(kinds[leading_dense_layers(model) :]):
            return "dense layers are built before all layers with experts only"
        return None
    if moe.shared_intermediate_size or moe.router_bias or moe.num_groups > 1 or moe.score_function != "softmax":
        return f"block {block.name} has no shared experts, router bias, groups or sigmoid scores"
    return None


def _activation(given: RuleInput) -> str | None:
    block, name = decoder_block(given.model), given.model.activation_function
    if block is None or name in block.activations:
        return None
    return f"block {block.name} is emitted with {' or '.join(block.activations)}, not {name}"


def _positions(given: RuleInput) -> str | None:
    block, model = decoder_block(given.model), given.model
    if block is None:
        return None
    wanted = "learned" if block.learned_positions else "rope"
    if model.position != wanted:
        return f"block {block.name} has {wanted} positions, not {model.position}"
    return None


MODEL_RULES: tuple[SpaceRule, ...] = (
    training_kinds(f"{TYPES}: the emitted configuration sets no use_dpo and no adapters"),
    packed_sequences(f"{TYPES}:1967-1976, layers/attention_op.py:2690", packings=BOTH),
    SpaceRule("M1", _DECODERS, _family),
    SpaceRule("M2", _MODELS, _parts),
    SpaceRule("M3", f"maxtext {MAXTEXT_VERSION} models/*.py, layers/attentions.py", _attention),
    SpaceRule("M4", f"maxtext {MAXTEXT_VERSION} models/*.py; {TYPES}:4990-5003", _layers),
    SpaceRule("M5", f"maxtext {MAXTEXT_VERSION} layers/moe.py, models/deepseek.py", _experts),
    SpaceRule("M6", _MODELS, _activation),
    SpaceRule("M7", f"maxtext {MAXTEXT_VERSION} layers/embeddings.py", _positions),
)
