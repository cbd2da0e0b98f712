"""Token mixers other than plain attention in Megatron-LM: three ways of saying them, and what each asks for.

* ``gated_delta_net``: ``pretrain_gpt.py --experimental-attention-variant gated_delta_net`` with a list of layers;
* ``dsa``: the same flag, all layers latent attention behind an indexer;
* ``pattern``: ``pretrain_hybrid.py --hybrid-layer-pattern``, one letter a layer of one block (``M`` Mamba-2, ``*``
  attention, ``-`` MLP, ``E`` experts), ``|`` between pipeline chunks.

Facts: Megatron-LM core_v0.19.0 (0.19.2 has no tag of its own): core/transformer/transformer_config.py:294-368 and
1347-1395, core/models/gpt/experimental_attention_variant_module_specs.py,
core/models/hybrid/hybrid_layer_allocation.py, core/ssm/mamba_mixer.py:150-276,
core/ssm/mamba_context_parallel.py:96-120.  The Mamba-2 mixer has chunks of 128 tokens whatever the model says, which
changes the tiling of its kernel, not the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from planner.backends.megatron.arguments import Words
from planner.backends.rules.rule import RuleInput, used_kinds
from planner.backends.rules.token_mixers import (
    MIXER_WORDS,
    beside_a_decoder,
    beyond_attention,
    beyond_mixers,
    softmax_attention,
)
from planner.model.mixers.delta_rule import DeltaRuleSpec
from planner.model.mixers.mamba import Mamba2Spec
from planner.model.spec import AttentionSpec, LayerSpec, ModelSpec
from planner.plan.plan import ChunkPlan

Way = Literal["gpt", "gated_delta_net", "dsa", "pattern"]
PATTERN = "--hybrid-layer-pattern"
SPEC: Words = ("megatron.core.models.hybrid.hybrid_layer_specs", "hybrid_stack_spec")


def way(model: ModelSpec) -> Way:
    """How Megatron-LM is told what the layers are."""
    kinds = used_kinds(model)
    names = {kind.attention.kind for kind in kinds}
    if names & {"mamba2", "none"} or any(kind.mlp is None and kind.moe is None for kind in kinds):
        return "pattern"
    if "gated_delta" in names:
        return "gated_delta_net"
    indexed = any(isinstance(kind.attention, AttentionSpec) and kind.attention.indexer for kind in kinds)
    return "dsa" if indexed else "gpt"


def mixer_problem(model: ModelSpec) -> str | None:
    """What none of the ways can say; None where one can."""
    if beyond_attention(model) is None:
        return None
    if said := beside_a_decoder(model) or beyond_mixers(model):
        return said
    kinds, found = used_kinds(model), way(model)
    if found == "pattern" and model.mtp is not None:
        return "multi-token prediction behind a hybrid pattern"
    names = {kind.attention.kind for kind in kinds}
    for name in sorted(names - {"gqa", "mla", "gated_delta", "mamba2", "none"}):
        if name in names:
            return f"layers of {MIXER_WORDS[name]}"
    if any(kind.beside is not None for kind in kinds):
        return "Mamba-2 beside attention in one layer"
    if found == "gated_delta_net":
        return _delta_problem(kinds)
    if found == "dsa":
        return _indexer_problem(kinds)
    return _pattern_problem(kinds) if found == "pattern" else None


def _delta_problem(kinds: Sequence[LayerSpec]) -> str | None:
    if len({kind.attention for kind in kinds if isinstance(kind.attention, DeltaRuleSpec)}) > 1:
        return "gated DeltaNet of different shapes in different layers"
    softmax = [kind.attention for kind in kinds if isinstance(kind.attention, AttentionSpec)]
    return "gated DeltaNet in all layers" if not softmax else None


def _indexer_problem(kinds: Sequence[LayerSpec]) -> str | None:
    found = {kind.attention.indexer for kind in kinds if isinstance(kind.attention, AttentionSpec)}
    if len(found) > 1:
        return "layers that take over the tokens which an earlier layer chose, or have another indexer"
    if any(kind.attention.kind != "mla" for kind in kinds):
        return "an indexer in front of attention that is not latent"
    return None


def _pattern_problem(kinds: Sequence[LayerSpec]) -> str | None:
    if any(letter(kind) is None for kind in kinds):
        return "layers of a token mixer and an MLP in a hybrid pattern, which has a letter for each block"
    mambas = {kind.attention for kind in kinds if isinstance(kind.attention, Mamba2Spec)}
    if len(mambas) > 1:
        return "Mamba-2 of different shapes in different layers"
    for mamba in mambas:
        if mamba.projection_bias or mamba.output_projection_bias or not mamba.conv_bias:
            return "Mamba-2 with biases in its projections, or without one in its convolution"
        if not mamba.gate_norm or mamba.conv_kernel != 4:
            return "Mamba-2 without its norm, or with a convolution that does not span 4 tokens"
    return None


def letter(kind: LayerSpec) -> str | None:
    """The letter of a layer of one block; None for a layer of two."""
    alone = kind.mlp is None and kind.moe is None
    if kind.attention.kind == "none":
        return "E" if kind.moe is not None else "-"
    if not alone:
        return None
    return {"mamba2": "M", "gqa": "*"}.get(kind.attention.kind)


def mixer_flags(model: ModelSpec) -> dict[str, Words]:
    """The flags of the token mixers beyond attention's own; the pattern itself depends on the split: ``pattern``."""
    found = way(model)
    flags: dict[str, Words] = {}
    attention = softmax_attention(model)
    if attention is not None and attention.output_gate:
        flags["--attention-output-gate"] = ()
    if found == "gated_delta_net":
        flags |= _delta_flags(model)
    if found == "dsa" and attention is not None and attention.indexer is not None:
        indexer = attention.indexer
        flags |= {
            "--experimental-attention-variant": ("dsa",),
            "--dsa-indexer-n-heads": (str(indexer.num_heads),),
            "--dsa-indexer-head-dim": (str(indexer.head_dim),),
            "--dsa-indexer-topk": (str(indexer.top_k),),
            "--no-rope-fusion": (),
        }
    if found == "pattern":
        flags["--spec"] = SPEC
        mambas = [kind.attention for kind in used_kinds(model) if isinstance(kind.attention, Mamba2Spec)]
        for mamba in mambas[:1]:
            flags |= {
                "--mamba-state-dim": (str(mamba.state_size),),
                "--mamba-head-dim": (str(mamba.head_dim),),
                "--mamba-num-groups": (str(mamba.num_groups),),
                "--mamba-num-heads": (str(mamba.num_heads),),
            }
    return flags


def _delta_flags(model: ModelSpec) -> dict[str, Words]:
    mixers = [model.layer_kinds[kind].attention for kind in model.layer_kind_sequence()]
    delta = next(mixer for mixer in mixers if isinstance(mixer, DeltaRuleSpec))
    ones = ",".join(str(int(isinstance(mixer, DeltaRuleSpec))) for mixer in mixers)
    return {
        "--experimental-attention-variant": ("gated_delta_net",),
        "--linear-attention-freq": (f"[{ones}]",),
        "--linear-conv-kernel-dim": (str(delta.conv_kernel),),
        "--linear-key-head-dim": (str(delta.key_head_dim),),
        "--linear-value-head-dim": (str(delta.value_head_dim),),
        "--linear-num-key-heads": (str(delta.num_key_heads),),
        "--linear-num-value-heads": (str(delta.num_value_heads),),
    }


def pattern(model: ModelSpec, chunks: Sequence[ChunkPlan]) -> str:
    """Letters of all layers, ``|`` between the pipeline chunks in model order."""
    letters = [letter(model.layer_kinds[kind]) or "?" for kind in model.layer_kind_sequence()]
    parts = [letters[chunk.first_layer : chunk.first_layer + chunk.num_layers] for chunk in chunks]
    return "|".join("".join(part) for part in parts)


def parse_pattern(text: str) -> tuple[ChunkPlan, ...]:
    """Chunks in model order of a pattern without multi-token prediction."""
    parts, chunks, first = text.split("|"), [], 0
    for index, part in enumerate(parts):
        head = index == len(parts) - 1
        chunks.append(
            ChunkPlan(
                chunk=index,
                first_layer=first,
                num_layers=len(part),
                has_embedding=index == 0,
                has_head=head,
                num_mtp_layers=0,
            )
        )
        first += len(part)
    return tuple(chunks)


def mixer_heads(given: RuleInput) -> str | None:
    """Heads that do not divide: DeltaNet's over tp x cp, Mamba-2's over tp and cp, its groups over tp."""
    tp, cp = given.strategy.tp, given.strategy.cp
    for mixer in dict.fromkeys(kind.attention for kind in used_kinds(given.model)):
        if isinstance(mixer, DeltaRuleSpec):
            for count, name in ((mixer.num_key_heads, "key"), (mixer.num_value_heads, "value")):
                if count % (tp * cp):
                    return f"gated DeltaNet: {count} {name} heads do not divide over tp x cp = {tp * cp}"
        if isinstance(mixer, Mamba2Spec):
            if mixer.num_groups % tp:
                return f"Mamba-2: {mixer.num_groups} groups do not divide over tp={tp}"
            if mixer.num_heads % (tp * cp):
                return f"Mamba-2: {mixer.num_heads} heads do not divide over tp x cp = {tp * cp}"
            groups = mixer.num_groups // tp
            if groups % cp and cp % groups:
                return f"Mamba-2: {groups} groups a tensor-parallel rank and cp={cp} do not divide each other"
    return None


def indexed_context(given: RuleInput) -> str | None:
    """Sparse attention under context parallelism takes all-gather only, which plans do not have."""
    if given.strategy.cp > 1 and way(given.model) == "dsa":
        return "DSA runs under context parallelism with cp_comm_type=allgather only, which plans do not use: cp=1"
    return None


def pattern_chunks(given: RuleInput) -> str | None:
    """Does every chunk of a hybrid pattern hold a layer?"""
    layers = given.layers_per_chunk
    if way(given.model) == "pattern" and layers is not None and 0 in layers:
        return "a hybrid pattern has no chunk without a layer"
    return None
