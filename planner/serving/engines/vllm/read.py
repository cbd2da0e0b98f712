"""vLLM's arguments and launch words as an instance of a deployment: the inverse of ``write``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.errors import DocumentInvalid
from planner.serving.engines.engine import Arguments, ReadInstance, Served
from planner.serving.engines.reading import Reading
from planner.serving.engines.vllm.words import CACHE_READ, KV_CONNECTOR, ONLINE, ONLINE_EXPERTS, flags
from planner.serving.engines.vllm.write import GIB, KV_ROLES
from planner.serving.layout import Formats, InstanceGroup, InstanceLayout, InstanceSettings, Speculation
from planner.serving.words import Role, WeightFormat

_PLACES = ("host", "port", "nnodes", "node_rank", "master_addr", "master_port", "headless", "dtype")
"""Arguments that say where an instance runs, or what every deployment says alike."""
_ROLES: dict[str, Role] = {word: role for role, word in KV_ROLES.items()}  # type: ignore[misc]  # keys are roles
_MADE: dict[str, WeightFormat] = {
    **{word: number_format for number_format, word in ONLINE_EXPERTS.items()},
    "fp8": "fp8",
    "fp8_per_channel": "fp8",
}


def read_words(words: Sequence[str], files: Mapping[str, str]) -> Arguments:
    """The arguments of ``vllm serve ...``; ``files`` is not read.  Raises DocumentInvalid."""
    if tuple(words[:2]) != ("vllm", "serve"):
        raise DocumentInvalid(
            "this is no `vllm serve` command", where=" ".join(words[:2]), hint="begin with vllm serve"
        )
    arguments, models = flags().from_words(words[2:])
    if len(models) > 1 or not (models or arguments.get("model")):
        raise DocumentInvalid("vllm serve takes one model", where="vllm serve", hint="name it after vllm serve")
    return {"model": models[0], **arguments} if models else arguments


def read_arguments(arguments: Mapping[str, Any], served: Served) -> ReadInstance:
    """One instance from the fields of ``EngineArgs``; what is not there is vLLM's default.  Raises DocumentInvalid."""
    given = Reading("vLLM", arguments)
    for name in _PLACES:
        given.take(name)
    layout = _layout(given)
    speculation, drafted = _speculation(given, served)
    group = InstanceGroup(role=_role(given), layout=layout, settings=_settings(given, layout, speculation))
    said = replace(drafted, model=given.take("model", served.model), longest_tokens=given.take("max_model_len"))
    formats = _formats(given, served)
    return ReadInstance(group, formats, said, given.rest())


def _layout(given: Reading) -> InstanceLayout:
    sizes = {
        "tp": given.take("tensor_parallel_size", 1),
        "pp": given.take("pipeline_parallel_size", 1),
        "attention_dp": given.take("data_parallel_size", 1),
        "cp": given.take("prefill_context_parallel_size", 1),
        "dcp": given.take("decode_context_parallel_size", 1),
    }
    together = given.take("enable_expert_parallel", False)
    ep = sizes["tp"] * sizes["attention_dp"] * sizes["cp"] if together else 1
    return given.made(InstanceLayout, ep=ep, **sizes)


def _settings(given: Reading, layout: InstanceLayout, speculation: Speculation | None) -> InstanceSettings:
    ranks = layout.attention_dp
    sequences, tokens = given.take("max_num_seqs"), given.take("max_num_batched_tokens")
    host = given.take("kv_offloading_size") or 0
    return given.made(
        InstanceSettings,
        max_num_sequences=None if sequences is None else sequences * ranks,
        max_num_batched_tokens=None if tokens is None else tokens * ranks,
        chunked_prefill=given.take("enable_chunked_prefill", True),
        memory_fraction=given.take("gpu_memory_utilization"),
        cache_block_tokens=given.take("block_size"),
        prefix_caching=given.take("enable_prefix_caching", True),
        cuda_graphs=not given.take("enforce_eager", False),
        host_cache_bytes=round(host * GIB / (layout.tp * layout.cp * layout.pp)),
        speculation=speculation,
        expert_exchange=given.take("all2all_backend"),
        redundant_experts=_redundant(given),
    )


def _redundant(given: Reading) -> int:
    config = given.take("eplb_config") or {}
    given.only("eplb_config", config, "num_redundant_experts")
    count = config.get("num_redundant_experts", 0)
    if count and not given.take("enable_eplb", False):
        raise DocumentInvalid(
            "num_redundant_experts without --enable-eplb is refused by vLLM", where="eplb_config", hint="add the flag"
        )
    return int(count)


def _speculation(given: Reading, served: Served) -> tuple[Speculation | None, Served]:
    config = given.take("speculative_config")
    if not config:
        return None, replace(served, draft_model=None, draft_parameters=None)
    given.only("speculative_config", config, "method", "num_speculative_tokens", "model")
    parameters = served.draft_parameters if "model" in config else None
    speculation = given.made(
        Speculation,
        method=config.get("method", "draft_model"),
        num_tokens=config.get("num_speculative_tokens"),
        draft_parameters=parameters,
    )
    return speculation, replace(served, draft_model=config.get("model"), draft_parameters=parameters)


def _role(given: Reading) -> Role:
    config = given.take("kv_transfer_config")
    if not config:
        return "aggregated"
    given.only("kv_transfer_config", config, "kv_connector", "kv_role")
    if config.get("kv_connector") != KV_CONNECTOR or config.get("kv_role") not in _ROLES:
        raise DocumentInvalid(
            f"kv_transfer_config {config} is none that is read",
            where="kv_transfer_config",
            hint=f"{KV_CONNECTOR} with kv_role kv_producer (prefill) or kv_consumer (decode)",
        )
    return _ROLES[config["kv_role"]]


def _formats(given: Reading, served: Served) -> Formats:
    word = given.take("kv_cache_dtype", "auto")
    kv_cache = CACHE_READ.get(word)
    if kv_cache is None:
        raise DocumentInvalid(f"kv_cache_dtype {word} is none of a deployment's", where="kv_cache_dtype")
    made, config = given.take("quantization"), given.take("quantization_config") or {}
    given.only("quantization_config", config, "linear", "moe")
    if made == "online":
        parts = [_made(config[part]) if part in config else "bf16" for part in ("linear", "moe")]
        return given.made(Formats, weights=parts[0], experts=parts[1], kv_cache=kv_cache)
    if made is not None and served.weights == "bf16":
        number_format = _made(made)
        if number_format in ONLINE:
            return given.made(Formats, weights=number_format, kv_cache=kv_cache)
        return given.made(Formats, weights="bf16", experts=number_format, kv_cache=kv_cache)
    return given.made(Formats, weights=served.weights, experts=served.experts, kv_cache=kv_cache)


def _made(word: str) -> WeightFormat:
    if word not in _MADE:
        raise DocumentInvalid(
            f"quantization {word} says how a checkpoint is stored, which is not known here",
            where="quantization",
            hint="say how the checkpoint is stored, and leave the argument out: vLLM reads it from the checkpoint",
        )
    return _MADE[word]
