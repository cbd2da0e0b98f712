"""A deployment as vLLM's arguments and launch words (``vllm serve``).

vLLM counts limits a data-parallel rank: each rank has a scheduler of its own (vllm/v1/engine/core.py), so an instance's
limits are divided by attention_dp.  Expert parallelism is on or off: its size is tp x attention_dp x cp
(vllm/config/parallel.py:223).  Several nodes are one instance by ``--nnodes`` with the mp executor; all nodes but the
first run ``--headless`` (vllm/entrypoints/cli/serve.py:69).
"""

from __future__ import annotations

from typing import Any

from planner.errors import BackEndRefused
from planner.serving.engines.engine import DRAFTED, HEAD, OWN, PORT, RANK, SIDE, Arguments, InstanceCommand, Served
from planner.serving.engines.vllm.words import CACHE, KV_CONNECTOR, ONLINE, ONLINE_EXPERTS, flags
from planner.serving.layout import Deployment, Formats, InstanceGroup, Speculation

GIB = 1 << 30
KV_ROLES = {"prefill": "kv_producer", "decode": "kv_consumer"}


def arguments(deployment: Deployment, group: InstanceGroup, served: Served) -> Arguments:
    """The fields of ``EngineArgs`` that one instance of the group sets; those of nodes and addresses left out.

    Raises BackEndRefused where the checkpoint cannot be loaded in the formats.
    """
    layout = group.layout
    sizes = {
        "pipeline_parallel_size": layout.pp,
        "data_parallel_size": layout.attention_dp,
        "prefill_context_parallel_size": layout.cp,
        "decode_context_parallel_size": layout.dcp,
    }
    return {
        "model": served.model,
        "dtype": "bfloat16",
        **_formats(deployment.formats, served),
        "tensor_parallel_size": layout.tp,
        **{name: size for name, size in sizes.items() if size > 1},
        **({"enable_expert_parallel": True} if layout.ep > 1 else {}),
        **_settings(group, served),
        **_roles(group),
    }


def _formats(formats: Formats, served: Served) -> Arguments:
    found: Arguments = {"kv_cache_dtype": CACHE[formats.kv_cache]}
    if (formats.weights, formats.of_experts) == (served.weights, served.of_experts):
        return found
    dense, experts = formats.weights, formats.of_experts
    makes = dense in {"bf16", *ONLINE} and experts in {"bf16", *ONLINE_EXPERTS}
    if (served.weights, served.of_experts) != ("bf16", "bf16") or not makes:
        raise BackEndRefused(
            f"vLLM cannot load a {served.weights} checkpoint as {formats.weights} with experts in {experts}",
            where="/formats/weights",
            hint="name a checkpoint that is stored in this format",
        )
    if dense == experts:
        return {**found, "quantization": ONLINE[dense]}
    parts = {"linear": dense, "moe": experts}
    config = {part: ONLINE_EXPERTS[made] for part, made in parts.items() if made != "bf16"}
    return {**found, "quantization": "online", "quantization_config": config}


def _settings(group: InstanceGroup, served: Served) -> Arguments:
    settings, ranks = group.settings, group.layout.attention_dp
    found: dict[str, Any] = {
        "max_model_len": served.longest_tokens,
        "max_num_seqs": _a_rank(settings.max_num_sequences, ranks),
        "max_num_batched_tokens": _a_rank(settings.max_num_batched_tokens, ranks),
        "enable_chunked_prefill": settings.chunked_prefill,
        "enable_prefix_caching": settings.prefix_caching,
        "gpu_memory_utilization": settings.memory_fraction,
        "block_size": settings.cache_block_tokens,
        "enforce_eager": True if not settings.cuda_graphs else None,
        "all2all_backend": settings.expert_exchange,
    }
    if settings.redundant_experts:
        found |= {"enable_eplb": True, "eplb_config": {"num_redundant_experts": settings.redundant_experts}}
    if settings.host_cache_bytes:
        # The sum over the ranks of one core (vllm/config/cache.py:383).
        ranks = group.layout.tp * group.layout.cp * group.layout.pp
        found["kv_offloading_size"] = settings.host_cache_bytes * ranks / GIB
    if settings.speculation is not None:
        found["speculative_config"] = _speculation(settings.speculation, served)
    return {name: value for name, value in found.items() if value is not None}


def _a_rank(limit: int | None, ranks: int) -> int | None:
    return None if limit is None else limit // ranks


def _speculation(speculation: Speculation, served: Served) -> Arguments:
    config: Arguments = {"method": speculation.method, "num_speculative_tokens": speculation.num_tokens}
    return {**config, "model": served.draft_model} if speculation.method in DRAFTED else config


def _roles(group: InstanceGroup) -> Arguments:
    if group.role == "aggregated":
        return {}
    return {"kv_transfer_config": {"kv_connector": KV_CONNECTOR, "kv_role": KV_ROLES[group.role]}}


def command(deployment: Deployment, group: InstanceGroup, served: Served, devices_per_node: int) -> InstanceCommand:
    """The launch of one instance.  Raises BackEndRefused where the checkpoint cannot be loaded in the formats."""
    told = arguments(deployment, group, served)
    model = told.pop("model")
    nodes = -(-group.layout.num_devices // devices_per_node)
    where: Arguments = {"host": "0.0.0.0", "port": PORT}
    if nodes > 1:
        where |= {"nnodes": nodes, "node_rank": RANK, "master_addr": HEAD, "master_port": 29501}
    words = ("vllm", "serve", model, *flags().to_words({**told, **where}))
    environment: dict[str, str] = {}
    if group.role != "aggregated":
        environment |= {"VLLM_NIXL_SIDE_CHANNEL_HOST": OWN, "VLLM_NIXL_SIDE_CHANNEL_PORT": SIDE}
    if group.layout.cp > 1:
        # Only the second model runner splits prompts (vllm/config/vllm.py:3092).
        environment["VLLM_USE_V2_MODEL_RUNNER"] = "1"
    return InstanceCommand(words, nodes, ("--headless",), environment)
