"""A deployment as SGLang's arguments and launch words (``python -m sglang.launch_server``).

``--tp-size`` counts all devices of a pipeline stage; attention's own tp is what attention_dp and cp leave of it
(srt/arg_groups/fields/parallel.py:317).  Limits are an instance's: SGLang itself divides the running requests and the
chunk of prompts by attention_dp (srt/arg_groups/parallel_hook.py:328, srt/mem_cache/kv_cache_configurator.py:3333).
"""

from __future__ import annotations

from typing import Any

from planner.errors import BackEndRefused
from planner.serving.engines.engine import DRAFTED, HEAD, PORT, RANK, SIDE, Arguments, InstanceCommand, Served
from planner.serving.engines.sglang.words import ALGORITHMS, CACHE, GIGABYTE, ONLINE, TRANSFER, flags
from planner.serving.layout import Deployment, Formats, InstanceGroup, Speculation

RENDEZVOUS_PORT = 20000


def arguments(deployment: Deployment, group: InstanceGroup, served: Served) -> Arguments:
    """The fields of ``ServerArgs`` that one instance of the group sets; those of nodes and addresses left out.

    Raises BackEndRefused where the checkpoint cannot be loaded in the formats.
    """
    layout = group.layout
    sizes = {
        "attn_dp_size": layout.attention_dp,
        "attn_cp_size": layout.cp,
        "dcp_size": layout.dcp,
        "pp_size": layout.pp,
        "ep_size": layout.ep,
    }
    return {
        "model_path": served.model,
        "dtype": "bfloat16",
        **_formats(deployment.formats, served),
        "tp_size": layout.stage_devices,
        **{name: size for name, size in sizes.items() if size > 1},
        **({"enable_prefill_cp": True, "cp_strategy": "interleave"} if layout.cp > 1 else {}),
        **_settings(group, served),
        **_role(group),
    }


def _formats(formats: Formats, served: Served) -> Arguments:
    found: Arguments = {"kv_cache_dtype": CACHE[formats.kv_cache]}
    if (formats.weights, formats.of_experts) == (served.weights, served.of_experts):
        return found
    if (served.weights, served.of_experts) != ("bf16", "bf16") or formats.weights != formats.of_experts:
        made = None
    else:
        made = ONLINE.get(formats.weights)
    if made is None:
        wanted = f"{formats.weights} with experts in {formats.of_experts}"
        raise BackEndRefused(
            f"SGLang cannot load a {served.weights} checkpoint as {wanted}",
            where="/formats/weights",
            hint="name a checkpoint that is stored in this format",
        )
    return {**found, "quantization": made}


def _settings(group: InstanceGroup, served: Served) -> Arguments:
    settings = group.settings
    tokens = settings.max_num_batched_tokens
    found: dict[str, Any] = {
        "context_length": served.longest_tokens,
        "max_running_requests": settings.max_num_sequences,
        "chunked_prefill_size": tokens if settings.chunked_prefill else -1,
        "max_prefill_tokens": None if settings.chunked_prefill else tokens,
        "mem_fraction_static": settings.memory_fraction,
        "page_size": settings.cache_block_tokens,
        "disable_radix_cache": True if not settings.prefix_caching else None,
        "disable_prefill_cuda_graph": True if not settings.cuda_graphs else None,
        "disable_decode_cuda_graph": True if not settings.cuda_graphs else None,
        "moe_a2a_backend": settings.expert_exchange,
    }
    if settings.redundant_experts:
        found |= {"enable_eplb": True, "ep_num_redundant_experts": settings.redundant_experts}
    if settings.host_cache_bytes:
        found |= {"enable_hierarchical_cache": True, "hicache_size": settings.host_cache_bytes // GIGABYTE}
    if settings.speculation is not None:
        found |= _speculation(settings.speculation, served)
    return {name: value for name, value in found.items() if value is not None}


def _speculation(speculation: Speculation, served: Served) -> Arguments:
    found: Arguments = {"speculative_algorithm": ALGORITHMS[speculation.method]}
    if speculation.method in DRAFTED:
        found["speculative_draft_model_path"] = served.draft_model
    if speculation.method != "ngram":
        found |= {"speculative_num_steps": speculation.num_tokens, "speculative_eagle_topk": 1}
    # The token that the model itself adds is counted as drafted (srt/arg_groups/speculative_hook.py).
    return {**found, "speculative_num_draft_tokens": speculation.num_tokens + 1}


def _role(group: InstanceGroup) -> Arguments:
    if group.role == "aggregated":
        return {}
    return {"disaggregation_mode": group.role, "disaggregation_transfer_backend": TRANSFER}


def command(deployment: Deployment, group: InstanceGroup, served: Served, devices_per_node: int) -> InstanceCommand:
    """The launch of one instance.  Raises BackEndRefused where the checkpoint cannot be loaded in the formats."""
    nodes = -(-group.layout.num_devices // devices_per_node)
    where: Arguments = {"host": "0.0.0.0", "port": PORT}
    if nodes > 1:
        where |= {"nnodes": nodes, "node_rank": RANK, "dist_init_addr": f"{HEAD}:{RENDEZVOUS_PORT}"}
    if group.role == "prefill":
        where["disaggregation_bootstrap_port"] = SIDE
    told = {**arguments(deployment, group, served), **where}
    return InstanceCommand(("python", "-m", "sglang.launch_server", *flags().to_words(told)), nodes)
