"""What SGLang 0.5.23 can express: its own checks, and those that it makes late or forgets.

It does not check heads against tp, pp against layers, experts against ep, nor blocks of fp8 scales before it loads
weights: it takes ep = 3 with tp = 8 and tp = 3 with 64 heads.
"""

from __future__ import annotations

from planner.serving.engines import shared_rules
from planner.serving.engines.engine import Asked, EngineRule
from planner.serving.engines.sglang.words import EXCHANGES, GIGABYTE, ONLINE
from planner.serving.words import WeightFormat

_ONLINE: frozenset[WeightFormat] = frozenset(ONLINE)


def _vendor(asked: Asked) -> str | None:
    if asked.device.vendor in ("NVIDIA", "AMD", "Huawei"):
        return None
    return f"SGLang {asked.release} is written for devices of NVIDIA, AMD and Huawei, not for {asked.device.name}"


def _dense_ranks(asked: Asked) -> str | None:
    if asked.group.layout.attention_dp > 1 and not asked.facts.num_experts:
        return "classes of models without experts split heads over all devices: use attention_dp = 1 and more instances"
    return None


def _dense_devices(asked: Asked) -> tuple[int, int]:
    """Devices that split an MLP, and shared experts: each holds these whole where an exchange moves tokens."""
    devices = asked.group.layout.stage_devices
    return devices, 1 if asked.group.settings.expert_exchange not in (None, "none") else devices


def _widths(asked: Asked) -> str | None:
    return shared_rules.widths_over_devices(asked, *_dense_devices(asked))


def _blocks(asked: Asked) -> str | None:
    return shared_rules.whole_blocks(asked, *_dense_devices(asked))


def _contexts(asked: Asked) -> str | None:
    layout = asked.group.layout
    if layout.dcp > 1 and layout.cp > 1:
        return f"dcp = {layout.dcp} and cp = {layout.cp} exclude each other (--dcp-size, --enable-prefill-cp): use one"
    if layout.cp > 1 and not asked.facts.latent:
        return "prefill context parallelism needs latent attention or MiMo's: use cp = 1"
    return None


def _exchange(asked: Asked) -> str | None:
    word, device, layout = asked.group.settings.expert_exchange, asked.device, asked.group.layout
    if word is None or not asked.facts.num_experts:
        return None
    if word not in EXCHANGES:
        return f"{word} is no exchange of experts of SGLang {asked.release}: use one of {', '.join(EXCHANGES)}"
    if EXCHANGES[word] and device.architecture not in EXCHANGES[word]:
        return f"{word} needs {' or '.join(EXCHANGES[word])}, {device.name} is {device.architecture}"
    if word != "none" and layout.ep != layout.stage_devices:
        return f"{word} sets ep to all {layout.stage_devices} devices of a stage: use ep = {layout.stage_devices}"
    if word == "pplx" and layout.attention_dp < 2:
        return "pplx exchanges tokens of several ranks: use attention_dp >= 2"
    if word == "flashinfer" and (layout.tp, layout.cp) != (1, 1):
        return "flashinfer exchanges tokens of ranks of one device: use tp = 1 and cp = 1 with more attention_dp"
    return None


def _redundant(asked: Asked) -> str | None:
    if asked.group.settings.redundant_experts and asked.group.layout.ep == 1:
        return "redundant experts need expert parallelism: use ep > 1, or redundant_experts = 0"
    return None


def _chunk_of_pages(asked: Asked) -> str | None:
    settings = asked.group.settings
    tokens, page = settings.max_num_batched_tokens, settings.cache_block_tokens
    if not settings.chunked_prefill or tokens is None or page is None or asked.group.role == "decode":
        return None
    chunk = tokens // asked.group.layout.attention_dp
    return f"a rank's chunk of {chunk} tokens is not whole blocks of {page}: change one" if chunk % page else None


def _cache_format(asked: Asked) -> str | None:
    wanted, device = asked.formats.kv_cache, asked.device
    if wanted == "nvfp4" and not shared_rules.at_least(device.architecture, "blackwell"):
        return f"keys and values in nvfp4 need blackwell, {device.name} is {device.architecture}: use fp8 or bf16"
    if wanted == "fp8" and device.vendor == "NVIDIA" and not shared_rules.at_least(device.architecture, "ampere"):
        return f"keys and values in fp8 need ampere or later, {device.name} is {device.architecture}: use bf16"
    return None


def _host_cache(asked: Asked) -> str | None:
    settings = asked.group.settings
    if not settings.host_cache_bytes:
        return None
    if not settings.prefix_caching:
        return "a host cache holds shared prefixes: use prefix_caching, or host_cache_bytes = 0"
    if settings.host_cache_bytes % GIGABYTE:
        return f"--hicache-size takes whole gigabytes: use host_cache_bytes = {settings.host_cache_bytes // GIGABYTE}e9"
    if asked.group.layout.dcp > 1 and (settings.speculation is not None or not asked.facts.latent):
        return "a host cache beside dcp > 1 needs latent attention and no speculation: use dcp = 1 or no host cache"
    if asked.group.role == "decode":
        return "a decode instance keeps no prefixes: use host_cache_bytes = 0"
    return None


def _speculation_in_stages(asked: Asked) -> str | None:
    speculation, layout = asked.group.settings.speculation, asked.group.layout
    if speculation is None or layout.pp == 1:
        return None
    if speculation.method in ("mtp", "eagle") and asked.group.role == "prefill":
        return None
    return "with pp > 1 only prefill instances draft, by mtp or eagle: use pp = 1, or no speculation"


def _online(asked: Asked) -> str | None:
    served, device = asked.served, asked.device
    made = served is not None and asked.formats.weights == "nvfp4" != served.weights
    if made and not shared_rules.at_least(device.architecture, "blackwell"):
        return f"nvfp4 is made on loading on blackwell only, {device.name} is {device.architecture}: use fp8"
    return shared_rules.formats_of_checkpoint(asked, _ONLINE)


def _together(asked: Asked) -> str | None:
    formats, served = asked.formats, asked.served
    if served is None or formats.weights == formats.of_experts:
        return None
    if (formats.weights, formats.of_experts) == (served.weights, served.of_experts):
        return None
    return "SGLang quantises dense weights and experts alike on loading: use one format, or a checkpoint that has both"


RULES = (
    EngineRule("SG1", (), "srt/platforms of 0.5.23", _vendor),
    EngineRule("SG2", ("tp",), "not checked by its arguments; models/llama.py:183", shared_rules.heads_over_tp),
    EngineRule("SG3", ("pp",), "not checked by SGLang: a stage without layers", shared_rules.stages_within_layers),
    EngineRule("SG4", ("ep", "redundant_experts"), "expert layers", shared_rules.experts_of_a_mixture),
    EngineRule("SG5", ("ep", "redundant_experts"), "not checked by its arguments", shared_rules.experts_over_ep),
    EngineRule("SG6", ("attention_dp",), "srt/models/llama.py:181, qwen2.py:165", _dense_ranks),
    EngineRule("SG7", ("tp", "ep"), "column and row splits of its layers", _widths),
    EngineRule("SG8", ("tp", "ep"), "blocks of fp8 scales, as vllm#40955", _blocks),
    EngineRule("SG9", ("dcp", "cp"), "srt/arg_groups/parallel_hook.py:249", _contexts),
    EngineRule("SG10", ("expert_exchange",), "srt/arg_groups/moe_hook.py", _exchange),
    EngineRule("SG11", ("redundant_experts",), "srt/eplb", _redundant),
    EngineRule("SG12", ("max_num_sequences",), "kv_cache_configurator.py:3333", shared_rules.limits_over_ranks),
    EngineRule("SG13", ("max_num_batched_tokens",), "srt/arg_groups/validation_hook.py:244", _chunk_of_pages),
    EngineRule("SG14", ("max_num_batched_tokens",), "--max-prefill-tokens", shared_rules.whole_prompts),
    EngineRule("SG15", ("weights",), "kernels of its methods", shared_rules.formats_on_device),
    EngineRule("SG16", ("weights",), "srt/arg_groups/choices.py:32", _online),
    EngineRule("SG17", ("experts",), "srt/arg_groups/choices.py:32", _together),
    EngineRule("SG18", ("kv_cache",), "srt/arg_groups/fields/model.py:197", _cache_format),
    EngineRule("SG19", ("host_cache_bytes",), "srt/arg_groups/hicache_hook.py", _host_cache),
    EngineRule("SG20", ("speculation",), "--speculative-draft-model-path", shared_rules.drafts_of_model),
    EngineRule("SG21", ("speculation", "pp"), "srt/arg_groups/validation_hook.py:131", _speculation_in_stages),
    EngineRule("SG22", ("tp", "pp"), "srt/arg_groups/validation_hook.py:179", shared_rules.whole_nodes),
)
"""Rules with a line number are SGLang's own at that line of the 0.5.23 wheel."""
