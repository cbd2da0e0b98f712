"""TensorRT-LLM's launch words and YAML as an instance of a deployment: the inverse of ``write``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.errors import DocumentInvalid
from planner.serving.engines.engine import DRAFTED, Arguments, ReadInstance, Served
from planner.serving.engines.reading import Reading
from planner.serving.engines.tensorrt_llm.schema import violations
from planner.serving.engines.tensorrt_llm.words import CACHE, METHODS
from planner.serving.engines.tensorrt_llm.write import graphs
from planner.serving.layout import Formats, InstanceGroup, InstanceLayout, InstanceSettings, Speculation
from planner.serving.words import CacheFormat, Role
from profiles.safe_yaml import load_yaml_text

_FLAGS = {"--host", "--port", "--backend", "--extra_llm_api_options", "--config"}
_CACHE: dict[str, CacheFormat] = {
    **{word: name for name, word in CACHE.items()},
    "bfloat16": "bf16",
    "fp8_ds_mla": "fp8",
}
_METHODS = {word: method for method, word in METHODS.items()}
_PLACES = ("backend", "dtype", "gpus_per_node", "disable_overlap_scheduler")
"""Arguments that say where an instance runs, or what every deployment says alike."""


def read_words(words: Sequence[str], files: Mapping[str, str]) -> Arguments:
    """The options of ``trtllm-serve MODEL --extra_llm_api_options FILE``.  Raises DocumentInvalid."""
    rest = [word for word in words if word != "trtllm-llmapi-launch"]
    if rest[:1] != ["trtllm-serve"]:
        raise DocumentInvalid("this starts no trtllm-serve", where=" ".join(words[:2]), hint="begin with trtllm-serve")
    rest = rest[2:] if rest[1:2] == ["serve"] else rest[1:]
    model, given = rest[0] if rest else "", dict(zip(rest[1::2], rest[2::2], strict=False))
    unknown = sorted(set(rest[1::2]) - _FLAGS)
    if unknown:
        raise DocumentInvalid(
            f"trtllm-serve has no flag {unknown[0]} here", where=unknown[0], hint="write it as a key of the YAML"
        )
    file = given.get("--extra_llm_api_options") or given.get("--config")
    if file is not None and file not in files:
        raise DocumentInvalid(f"{file} is not there", where=file, hint="give the YAML that the words name")
    options = load_yaml_text(files[file], file) if file is not None else {}
    wrong = violations(options)
    if wrong:
        raise DocumentInvalid(wrong[0], where=wrong[0].partition(":")[0], hint="see TorchLlmArgs of the release")
    return {"model": model, **options}


def read_arguments(arguments: Mapping[str, Any], served: Served) -> ReadInstance:
    """One instance from the fields of ``TorchLlmArgs``; what is not there is the default.  Raises DocumentInvalid."""
    given = Reading("TensorRT-LLM", arguments)
    eager = "cuda_graph_config" in arguments and arguments["cuda_graph_config"] is None
    role = _role(given)
    for name in _PLACES:
        given.take(name)
    layout = _layout(given)
    speculation, drafted = _speculation(given, served)
    cache = Reading("TensorRT-LLM", given.take("kv_cache_config") or {})
    word = cache.take("dtype", "auto")
    if word not in _CACHE:
        raise DocumentInvalid(f"kv_cache_config.dtype {word} is none of a deployment's", where="kv_cache_config/dtype")
    settings = _settings(given, cache, layout, served, speculation=speculation, eager=eager)
    shown = given.take("cuda_graph_config")
    unread = [f"kv_cache_config/{name}" for name in cache.rest()]
    unread += ["cuda_graph_config"] if shown not in (None, graphs(settings, layout)) else []
    said = replace(drafted, model=given.take("model", served.model), longest_tokens=given.take("max_seq_len"))
    formats = given.made(Formats, weights=served.weights, experts=served.experts, kv_cache=_CACHE[word])
    group = InstanceGroup(role=role, layout=layout, settings=settings)
    return ReadInstance(group, formats, said, tuple(sorted([*given.rest(), *unread])))


def _role(given: Reading) -> Role:
    transfers = given.take("cache_transceiver_config") is not None
    if not transfers:
        return "aggregated"
    return "prefill" if given.take("disable_overlap_scheduler", False) else "decode"


def _layout(given: Reading) -> InstanceLayout:
    devices, over_requests = given.take("tensor_parallel_size", 1), given.take("enable_attention_dp", False)
    ep = given.take("moe_expert_parallel_size") or 1
    given.take("moe_tensor_parallel_size")
    return given.made(
        InstanceLayout,
        tp=1 if over_requests else devices,
        attention_dp=devices if over_requests else 1,
        cp=given.take("context_parallel_size", 1),
        pp=given.take("pipeline_parallel_size", 1),
        ep=ep,
    )


def _settings(
    given: Reading,
    cache: Reading,
    layout: InstanceLayout,
    served: Served,
    *,
    speculation: Speculation | None,
    eager: bool,
) -> InstanceSettings:
    moe = Reading("TensorRT-LLM", given.take("moe_config") or {})
    balancer = moe.take("load_balancer") or {}
    slots = balancer.get("num_slots") or 0
    sequences, tokens = given.take("max_batch_size"), given.take("max_num_tokens")
    return given.made(
        InstanceSettings,
        max_num_sequences=sequences and sequences * layout.attention_dp,
        max_num_batched_tokens=tokens and tokens * layout.attention_dp,
        chunked_prefill=given.take("enable_chunked_prefill", False),
        memory_fraction=cache.take("free_gpu_memory_fraction"),
        cache_block_tokens=cache.take("tokens_per_block"),
        prefix_caching=cache.take("enable_block_reuse", True),
        cuda_graphs=not eager,
        host_cache_bytes=cache.take("host_cache_size", 0),
        speculation=speculation,
        expert_exchange=moe.take("backend"),
        redundant_experts=max(0, slots - served.num_experts),
    )


def _speculation(given: Reading, served: Served) -> tuple[Speculation | None, Served]:
    config = given.take("speculative_config")
    if not config:
        return None, replace(served, draft_model=None, draft_parameters=None)
    given.only("speculative_config", config, "decoding_type", "max_draft_len", "speculative_model")
    word = config.get("decoding_type")
    if word not in _METHODS:
        raise DocumentInvalid(
            f"speculation by {word} is not read",
            where="speculative_config/decoding_type",
            hint=f"one of {', '.join(_METHODS)}",
        )
    parameters = served.draft_parameters if _METHODS[word] in DRAFTED else None
    tokens = config.get("max_draft_len")
    speculation = given.made(Speculation, method=_METHODS[word], num_tokens=tokens, draft_parameters=parameters)
    return speculation, replace(served, draft_model=config.get("speculative_model"), draft_parameters=parameters)
