"""Nemotron-H: layers of one block each, a token mixer or an MLP or a mixture of experts, with one norm before it.

Shapes: ``transformers`` 5.23 ``models/nemotron_h``.  ``layers_block_type`` (or ``hybrid_override_pattern``: M, *, -, E)
names the block of every layer.
"""

from __future__ import annotations

from planner.model.hf_config.class_keys import ClassKeys
from planner.model.hf_config.decoder import Decoder, Experts
from planner.model.hf_config.decoder_reading import read_attention, read_moe
from planner.model.hf_config.layer_rules import all_routed
from planner.model.hf_config.mixer_rules import read_mamba2
from planner.model.hf_config.reader import MAX_LAYERS, ConfigReader
from planner.model.layer_runs import runs_of
from planner.model.mixers.absent import AbsentMixerSpec
from planner.model.mixers.mamba import Mamba2Spec
from planner.model.spec import LayerSpec, MlpSpec, ModelSpec, MoeSpec, MtpSpec

_WORDS = {"linear_attention": "M", "mamba": "M", "full_attention": "*", "attention": "*", "mlp": "-", "moe": "E"}
_DEFAULT = "ME*-"
_ATTENTION = Decoder(qkv_bias=False, output_bias=False, position="none")
_EXPERTS = Experts(
    all_routed,
    count="n_routed_experts",
    shared_width="moe_shared_expert_intermediate_size",
    shared_bias="mlp_bias",
    score_function="sigmoid",
    groups=True,
)
_EXPERT_KEYS = ("n_routed_experts", "n_shared_experts", "moe_intermediate_size", "n_group", "topk_group")
_MAMBA = ("mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel", "chunk_size")


def import_nemotron_h(reader: ConfigReader, name: str) -> ModelSpec:
    """Read a Nemotron-H; its multi-token-prediction modules are attention and experts in one layer."""
    keys = ClassKeys(reader, "nemotron_h")
    keys.on("tie_word_embeddings")
    hidden, pattern = keys.width("hidden_size"), _pattern(keys)
    blocks = {symbol: _layer(keys, symbol, hidden) for symbol in sorted(set(pattern))}
    if "E" not in pattern:
        for key in _EXPERT_KEYS:  # the class has defaults for them whether or not a layer routes
            keys.optional(key, minimum=0)
    kinds, runs = runs_of([blocks[symbol] for symbol in pattern])
    predicted = keys.optional("num_nextn_predict_layers", minimum=0)
    if predicted:
        kinds = (*kinds, _predicting(keys, hidden))
    return ModelSpec(
        name=name,
        family="nemotron_h",
        hidden_size=hidden,
        vocab_size=keys.integer("vocab_size"),
        layer_kinds=kinds,
        layer_runs=runs,
        tie_embeddings=False,  # the class has no tied weights, whatever the key says
        max_sequence_length=keys.integer("max_position_embeddings"),
        mtp=MtpSpec(num_layers=predicted, kind=len(kinds) - 1) if predicted else None,
        activation_function=keys.text("mlp_hidden_act", "relu2"),
        position="none",
        norm_epsilon=keys.number("layer_norm_epsilon", 1e-5),
    )


def _predicting(keys: ClassKeys, hidden: int) -> LayerSpec:
    """The layer of a multi-token-prediction module: attention, then experts, each with its norm."""
    words = keys.reader.strings("mtp_layers_block_type") or ["full_attention", "moe"]
    given = keys.reader.text("mtp_hybrid_override_pattern", default="".join(_WORDS.get(word, "?") for word in words))
    if given != "*E":
        said = f"must be attention followed by experts (*E), is {given[:40]!r}"
        keys.reader.refuse(
            "mtp_hybrid_override_pattern", said, "set num_nextn_predict_layers to 0 to plan without them"
        )
    return LayerSpec(attention=read_attention(keys, _ATTENTION, hidden), moe=_experts(keys))


def _pattern(keys: ClassKeys) -> str:
    """One symbol a layer."""
    for key in ("layers_block_type", "layer_types"):
        names = keys.reader.strings(key)
        if names is not None:
            for other in sorted(set(names) - set(_WORDS)):
                keys.reader.refuse(key, f"holds {other[:40]!r}; {', '.join(sorted(_WORDS))} are read")
            return "".join(_WORDS.get(each, "M") for each in names[:MAX_LAYERS]) or _DEFAULT
    given = keys.reader.text("hybrid_override_pattern", default=_DEFAULT)
    others = sorted(set(given) - set("M*-E"))
    if others or not given:
        keys.reader.refuse("hybrid_override_pattern", f"must be made of M, *, - and E, is {given[:40]!r}")
        return _DEFAULT
    return given[:MAX_LAYERS]


def _layer(keys: ClassKeys, symbol: str, hidden: int) -> LayerSpec:
    if symbol == "M":
        return LayerSpec(attention=_mamba(keys), num_norms=1)
    if symbol == "*":
        return LayerSpec(attention=read_attention(keys, _ATTENTION, hidden), num_norms=1)
    if symbol == "-":
        width = keys.width("intermediate_size")
        mlp = MlpSpec(intermediate_size=width, gated=False, bias=keys.on("mlp_bias"))
        return LayerSpec(attention=AbsentMixerSpec(), mlp=mlp, num_norms=1)
    return LayerSpec(attention=AbsentMixerSpec(), moe=_experts(keys), num_norms=1)


def _mamba(keys: ClassKeys) -> Mamba2Spec:
    inner = keys.integer("mamba_num_heads") * keys.integer("mamba_head_dim")
    return read_mamba2(keys, inner, names=_MAMBA, biases=("use_conv_bias", "use_bias", "use_bias"))


def _experts(keys: ClassKeys) -> MoeSpec:
    latent = keys.optional("moe_latent_size")
    keys.optional("n_shared_experts", minimum=0)  # the class builds one shared expert whatever it says
    return read_moe(keys, _EXPERTS).model_copy(
        update={"gated": False, "latent_size": latent, "latent_bias": latent is not None and keys.on("mlp_bias")}
    )
