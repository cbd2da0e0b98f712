"""What an engine's rules read of a model: a few numbers, taken from its layers once."""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.spec import LayerSpec, ModelSpec


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Numbers of one model; tuples hold every distinct value over its layers, ascending."""

    name: str
    family: str
    num_layers: int
    hidden_size: int
    num_heads: tuple[int, ...]
    """Query heads of layers with attention."""
    num_kv_heads: tuple[int, ...]
    """Key-value heads of layers with grouped-query attention; empty where all attention is latent."""
    latent: bool
    """Whether some layer has DeepSeek's latent attention."""
    attention_everywhere: bool
    """Whether every layer has attention (no state-space or linear mixers)."""
    mlp_sizes: tuple[int, ...]
    """Inner widths of dense MLPs."""
    shared_sizes: tuple[int, ...]
    """Inner widths of shared experts, of one layer together."""
    expert_sizes: tuple[int, ...]
    """Inner widths of routed experts."""
    num_experts: int
    """Routed experts of a layer, the most; 0 for a dense model."""
    num_mtp_layers: int
    longest_tokens: int


def model_facts(model: ModelSpec) -> ModelFacts:
    """The facts of a model; call it once a search."""
    kinds = [model.layer_kinds[index] for index in sorted({run.kind for run in model.layer_runs})]
    attentions = [kind.attention for kind in kinds if kind.attention.kind in ("gqa", "mla")]
    grouped = [each for each in attentions if each.kind == "gqa"]
    mixtures = [kind.moe for kind in kinds if kind.moe is not None]
    shared = [moe.shared_intermediate_size for moe in mixtures if moe.shared_intermediate_size]
    return ModelFacts(
        name=model.name,
        family=model.family,
        num_layers=sum(run.count for run in model.layer_runs),
        hidden_size=model.hidden_size,
        num_heads=_distinct([each.num_heads for each in attentions]),
        num_kv_heads=_distinct([each.num_kv_heads for each in grouped]),
        latent=len(grouped) < len(attentions),
        attention_everywhere=all(kind.attention.kind in ("gqa", "mla") for kind in kinds),
        mlp_sizes=_distinct(_mlp_sizes(kinds)),
        shared_sizes=_distinct(shared),
        expert_sizes=_distinct([moe.expert_intermediate_size for moe in mixtures]),
        num_experts=max((moe.num_experts for moe in mixtures), default=0),
        num_mtp_layers=model.mtp.num_layers if model.mtp else 0,
        longest_tokens=model.max_sequence_length,
    )


def _mlp_sizes(kinds: list[LayerSpec]) -> list[int]:
    return [kind.mlp.intermediate_size for kind in kinds if kind.mlp is not None]


def _distinct(values: list[int]) -> tuple[int, ...]:
    return tuple(sorted(set(values)))
