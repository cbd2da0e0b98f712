"""What vLLM 0.33.0 can express: its own checks, and those that it makes late or forgets.

It does not check pp against layers, dcp of an uneven split, blocks of fp8 scales before weights are loaded, nor that
``--kv-offloading-size`` takes the place of the connector of a prefill or decode instance.
"""

from __future__ import annotations

from planner.serving.engines import shared_rules
from planner.serving.engines.engine import Asked, EngineRule
from planner.serving.engines.vllm.words import EXCHANGES, ONLINE, ONLINE_EXPERTS
from planner.serving.words import WeightFormat

_ONLINE: frozenset[WeightFormat] = frozenset(ONLINE)
_ONLINE_EXPERTS: frozenset[WeightFormat] = frozenset(ONLINE_EXPERTS)


def _vendor(asked: Asked) -> str | None:
    if asked.device.vendor in ("NVIDIA", "AMD"):
        return None
    return f"vLLM {asked.release} is written for devices of NVIDIA and AMD, not for {asked.device.name}"


def _expert_parallel(asked: Asked) -> str | None:
    layout = asked.group.layout
    if layout.ep in (1, layout.stage_devices):
        return None
    return f"ep is 1 or tp x attention_dp x cp = {layout.stage_devices} (--enable-expert-parallel), not {layout.ep}"


def _dense_ranks(asked: Asked) -> str | None:
    if asked.group.layout.attention_dp > 1 and not asked.facts.num_experts:
        return "ranks of a model without experts share nothing: use attention_dp = 1 and more instances"
    return None


def _decode_context(asked: Asked) -> str | None:
    layout, facts = asked.group.layout, asked.facts
    if layout.dcp == 1:
        return None
    if layout.cp > 1 and layout.dcp not in (layout.cp, layout.tp * layout.cp):
        return f"beside cp = {layout.cp}, dcp is 1 or {layout.cp}, not {layout.dcp}"
    if facts.latent:
        return None
    for heads, kv_heads in zip(facts.num_heads, facts.num_kv_heads, strict=False):
        most = layout.tp // kv_heads
        if layout.tp <= kv_heads:
            return f"dcp needs a tp above the {kv_heads} key-value heads, tp is {layout.tp}: use dcp = 1"
        if layout.dcp > most:
            return f"dcp = {layout.dcp} is above tp / key-value heads = {most}: use dcp <= {most}"
        if (heads // kv_heads) % layout.dcp:
            return f"dcp = {layout.dcp} does not divide the {heads // kv_heads} query heads of a key-value head"
    return None


def _transfer_of_shared_cache(asked: Asked) -> str | None:
    layout = asked.group.layout
    if asked.group.role == "aggregated" or layout.dcp == 1:
        return None
    if not asked.facts.latent:
        return "a prefill or decode instance with dcp > 1 needs latent attention: use dcp = 1"
    whole = max(layout.tp, layout.cp)
    return None if layout.dcp == whole else f"dcp of a prefill or decode instance is 1 or {whole}, not {layout.dcp}"


def _transfer_and_offload(asked: Asked) -> str | None:
    if asked.group.role == "aggregated" or not asked.group.settings.host_cache_bytes:
        return None
    return "--kv-offloading-size takes the place of the connector between prefill and decode: use host_cache_bytes = 0"


def _redundant(asked: Asked) -> str | None:
    if asked.group.settings.redundant_experts and asked.group.layout.ep == 1:
        return "redundant experts need expert parallelism: use ep > 1, or redundant_experts = 0"
    return None


def _exchange(asked: Asked) -> str | None:
    word, device = asked.group.settings.expert_exchange, asked.device
    if word is None or not asked.facts.num_experts:
        return None
    if word not in EXCHANGES:
        return f"{word} is no exchange of experts of vLLM {asked.release} for {device.vendor}: {', '.join(EXCHANGES)}"
    if EXCHANGES[word] and device.architecture not in EXCHANGES[word]:
        return f"{word} needs {' or '.join(EXCHANGES[word])}, {device.name} is {device.architecture}"
    if EXCHANGES[word] and asked.group.layout.ep == 1:
        return f"{word} exchanges the tokens of expert parallelism: use ep > 1, or leave expert_exchange out"
    return None


def _cache_format(asked: Asked) -> str | None:
    wanted, device = asked.formats.kv_cache, asked.device
    if wanted == "nvfp4" and not shared_rules.at_least(device.architecture, "blackwell"):
        return f"keys and values in nvfp4 need blackwell, {device.name} is {device.architecture}: use fp8 or bf16"
    if wanted == "fp8" and device.vendor == "NVIDIA" and not shared_rules.at_least(device.architecture, "ampere"):
        return f"keys and values in fp8 need ampere or later, {device.name} is {device.architecture}: use bf16"
    return None


def _block(asked: Asked) -> str | None:
    block = asked.group.settings.cache_block_tokens
    return f"cache_block_tokens = {block} is no multiple of 16" if block is not None and block % 16 else None


def _ranks_on_nodes(asked: Asked) -> str | None:
    layout, node = asked.group.layout, asked.devices_per_node
    rank = layout.num_devices // layout.attention_dp
    if not node or layout.num_devices <= node or layout.attention_dp == 1 or node % rank == 0 or rank % node == 0:
        return None
    return f"a rank of attention_dp has {rank} devices, which neither divide a node of {node} nor fill nodes: change tp"


def _dense_devices(asked: Asked) -> tuple[int, int]:
    """Devices that split an MLP, and shared experts: one holds these whole where tokens are split over tp instead."""
    layout = asked.group.layout
    whole = layout.ep > 1 and layout.tp > 1 and layout.attention_dp > 1  # use_sequence_parallel_moe
    return layout.tp, 1 if whole else layout.tp


def _widths(asked: Asked) -> str | None:
    return shared_rules.widths_over_devices(asked, *_dense_devices(asked))


def _blocks(asked: Asked) -> str | None:
    return shared_rules.whole_blocks(asked, *_dense_devices(asked))


def _online(asked: Asked) -> str | None:
    return shared_rules.formats_of_checkpoint(asked, _ONLINE, _ONLINE_EXPERTS)


RULES = (
    EngineRule("VL1", (), "vllm/platforms/__init__.py, wheels of 0.33.0", _vendor),
    EngineRule("VL2", ("tp",), "vllm/config/model.py:1557", shared_rules.heads_over_tp),
    EngineRule("VL3", ("pp",), "not checked by vLLM: a stage without layers", shared_rules.stages_within_layers),
    EngineRule("VL4", ("ep",), "vllm/config/parallel.py:223", _expert_parallel),
    EngineRule("VL5", ("ep", "redundant_experts"), "vllm/config/model.py:1566", shared_rules.experts_of_a_mixture),
    EngineRule("VL6", ("ep", "redundant_experts"), "fused_moe/expert_map_manager.py:62", shared_rules.experts_over_ep),
    EngineRule("VL7", ("attention_dp",), "vllm/engine/arg_utils.py:2448", _dense_ranks),
    EngineRule("VL8", ("tp", "ep"), "column and row splits of vLLM's layers", _widths),
    EngineRule("VL9", ("tp", "ep"), "quantization/utils/fp8_utils.py, vllm#40955", _blocks),
    EngineRule("VL10", ("dcp",), "vllm/config/parallel.py:577, config/model.py:1578", _decode_context),
    EngineRule("VL11", ("dcp",), "vllm/config/vllm.py:1574", _transfer_of_shared_cache),
    EngineRule("VL12", ("host_cache_bytes",), "vllm/config/vllm.py:1158", _transfer_and_offload),
    EngineRule("VL13", ("redundant_experts",), "vllm/config/parallel.py:546", _redundant),
    EngineRule("VL14", ("expert_exchange",), "vllm/config/parallel.py:45", _exchange),
    EngineRule("VL15", ("max_num_sequences",), "vllm/v1/engine/core.py: one a rank", shared_rules.limits_over_ranks),
    EngineRule("VL16", ("max_num_batched_tokens",), "vllm/config/scheduler.py:332", shared_rules.tokens_for_sequences),
    EngineRule("VL17", ("max_num_batched_tokens",), "vllm/config/scheduler.py:322", shared_rules.whole_prompts),
    EngineRule("VL18", ("weights",), "get_min_capability of its methods", shared_rules.formats_on_device),
    EngineRule("VL19", ("weights",), "vllm/config/quantization.py:195", _online),
    EngineRule("VL20", ("kv_cache",), "vllm/v1/attention/backends", _cache_format),
    EngineRule("VL21", ("cache_block_tokens",), "block sizes of its attention kernels", _block),
    EngineRule("VL22", ("speculation",), "vllm/config/speculative.py:419", shared_rules.drafts_of_model),
    EngineRule("VL23", ("tp", "pp"), "vllm/engine/arg_utils.py:2406", shared_rules.whole_nodes),
    EngineRule("VL24", ("attention_dp",), "vllm/config/parallel.py nnodes_within_dp", _ranks_on_nodes),
)
"""Rules with a line number are vLLM's own at that line of the 0.33.0 wheel."""
