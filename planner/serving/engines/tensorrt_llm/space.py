"""What TensorRT-LLM 1.3.0rc29 can express: the checks of its mapping and arguments, and those that it makes late."""

from __future__ import annotations

from planner.serving.engines import shared_rules
from planner.serving.engines.engine import Asked, EngineRule

MOE_BACKENDS = {
    "AUTO": (),
    "CUTLASS": (),
    "TRITON": (),
    "MARLIN": (),
    "DEEPGEMM": ("hopper", "blackwell"),
    "TRTLLM": ("blackwell",),
    "CUTEDSL": ("blackwell",),
}
"""``moe_config.backend``, and the architectures that have its kernels; none = all."""


def _vendor(asked: Asked) -> str | None:
    vendor = asked.device.vendor
    return None if vendor == "NVIDIA" else f"TensorRT-LLM runs on devices of NVIDIA, not on {asked.device.name}"


def _split_attention(asked: Asked) -> str | None:
    layout = asked.group.layout
    if layout.tp > 1 and layout.attention_dp > 1:
        both = layout.tp * layout.attention_dp
        return f"attention is split over heads or over requests: use tp = {both} or attention_dp = {both}"
    return None


def _decode_context(asked: Asked) -> str | None:
    return None if asked.group.layout.dcp == 1 else "TensorRT-LLM has no decode context parallelism: use dcp = 1"


def _context(asked: Asked) -> str | None:
    layout = asked.group.layout
    if layout.cp > 1 and (layout.ep > 1 or layout.attention_dp > 1):
        return f"cp = {layout.cp} excludes expert parallelism and attention_dp: use cp = 1"
    return None


def _dense_ranks(asked: Asked) -> str | None:
    if asked.group.layout.attention_dp > 1 and not asked.facts.num_experts:
        return "attention_dp is of models with experts: use attention_dp = 1 and more instances"
    return None


def _dense_devices(asked: Asked) -> tuple[int, int]:
    """Devices that split an MLP, and shared experts: with attention_dp each holds them whole."""
    layout = asked.group.layout
    return layout.tp, layout.tp


def _widths(asked: Asked) -> str | None:
    return shared_rules.widths_over_devices(asked, *_dense_devices(asked))


def _blocks(asked: Asked) -> str | None:
    return shared_rules.whole_blocks(asked, *_dense_devices(asked))


def _exchange(asked: Asked) -> str | None:
    word, device = asked.group.settings.expert_exchange, asked.device
    if word is None or not asked.facts.num_experts:
        return None
    if word not in MOE_BACKENDS:
        return f"{word} is no moe_config.backend: use one of {', '.join(MOE_BACKENDS)}"
    if MOE_BACKENDS[word] and device.architecture not in MOE_BACKENDS[word]:
        return (
            f"moe_config.backend {word} needs {' or '.join(MOE_BACKENDS[word])}, {device.name} is {device.architecture}"
        )
    return None


def _redundant(asked: Asked) -> str | None:
    if asked.group.settings.redundant_experts and asked.group.layout.ep == 1:
        return "redundant experts need expert parallelism: use ep > 1, or redundant_experts = 0"
    return None


def _formats(asked: Asked) -> str | None:
    return shared_rules.formats_of_checkpoint(asked, frozenset())


def _formats_on_device(asked: Asked) -> str | None:
    device = asked.device
    for number_format in (asked.formats.weights, asked.formats.of_experts):
        first = shared_rules.MULTIPLIED_SINCE.get(number_format)
        if first is not None and not shared_rules.at_least(device.architecture, first):
            return f"{number_format} needs {first} or later, {device.name} is {device.architecture}: use int4 or bf16"
    return shared_rules.formats_on_device(asked)


def _cache_format(asked: Asked) -> str | None:
    wanted, device = asked.formats.kv_cache, asked.device
    first = {"nvfp4": "blackwell", "fp8": "ada"}.get(wanted)
    if first is not None and not shared_rules.at_least(device.architecture, first):
        return f"keys and values in {wanted} need {first}, {device.name} is {device.architecture}: use another kv_cache"
    return None


def _block(asked: Asked) -> str | None:
    block = asked.group.settings.cache_block_tokens
    if block is None or (block >= 8 and block & (block - 1) == 0):
        return None
    return f"tokens_per_block is a power of two from 8, not {block}"


def _buffer_of_blocks(asked: Asked) -> str | None:
    settings = asked.group.settings
    tokens, block = settings.max_num_batched_tokens, settings.cache_block_tokens or 32
    if asked.group.role == "aggregated" or tokens is None:
        return None
    tokens //= asked.group.layout.attention_dp
    return f"the transfer moves whole blocks of {block}: a rank's {tokens} tokens are none" if tokens % block else None


def _eagle(asked: Asked) -> str | None:
    speculation = asked.group.settings.speculation
    if speculation is not None and speculation.method == "eagle":
        return "the PyTorch backend takes drafts of EAGLE 3 only: use eagle3"
    return shared_rules.drafts_of_model(asked)


RULES = (
    EngineRule("TR1", (), "NVIDIA's software", _vendor),
    EngineRule("TR2", ("tp", "attention_dp"), "tensorrt_llm/mapping.py", _split_attention),
    EngineRule("TR3", ("tp",), "attention layers", shared_rules.heads_over_tp),
    EngineRule("TR4", ("pp",), "tensorrt_llm/mapping.py pp_layers", shared_rules.stages_within_layers),
    EngineRule("TR5", ("dcp",), "no such argument in llm_args.py", _decode_context),
    EngineRule("TR6", ("cp",), "tensorrt_llm/mapping.py", _context),
    EngineRule("TR7", ("ep", "redundant_experts"), "expert layers", shared_rules.experts_of_a_mixture),
    EngineRule("TR8", ("ep", "redundant_experts"), "llm_args.py MoeLoadBalancerConfig", shared_rules.experts_over_ep),
    EngineRule("TR9", ("attention_dp",), "attention data parallelism of expert models", _dense_ranks),
    EngineRule("TR10", ("tp", "ep"), "column and row splits of its layers", _widths),
    EngineRule("TR11", ("tp", "ep"), "blocks of fp8 scales, as vllm#40955", _blocks),
    EngineRule("TR12", ("expert_exchange",), "llm_args.py MoeConfig", _exchange),
    EngineRule("TR13", ("redundant_experts",), "llm_args.py MoeLoadBalancerConfig", _redundant),
    EngineRule("TR14", ("max_num_sequences",), "llm_args.py: of one rank", shared_rules.limits_over_ranks),
    EngineRule("TR15", ("max_num_batched_tokens",), "llm_args.py", shared_rules.tokens_for_sequences),
    EngineRule("TR16", ("max_num_batched_tokens",), "llm_args.py", shared_rules.whole_prompts),
    EngineRule("TR17", ("weights",), "matrix units", _formats_on_device),
    EngineRule("TR18", ("weights",), "the checkpoint's hf_quant_config.json", _formats),
    EngineRule("TR19", ("kv_cache",), "llm_args.py KvCacheConfig.dtype", _cache_format),
    EngineRule("TR20", ("cache_block_tokens",), "kernels of paged attention", _block),
    EngineRule("TR21", ("max_num_batched_tokens",), "aiconfigurator 0.12.0 trtllm.rule", _buffer_of_blocks),
    EngineRule("TR22", ("speculation",), "llm_args.py validate_speculative_config", _eagle),
    EngineRule("TR23", ("tp", "pp"), "gpus_per_node", shared_rules.whole_nodes),
)
