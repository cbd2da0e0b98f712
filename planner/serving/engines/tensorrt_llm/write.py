"""A deployment as TensorRT-LLM's arguments and launch words (``trtllm-serve`` with a YAML of ``TorchLlmArgs``).

``tensor_parallel_size`` counts all devices of a pipeline stage; with ``enable_attention_dp`` each of them has requests
of its own and the limits are those of one rank (tensorrt_llm/llmapi/llm_args.py, mapping.py).  Over several nodes
``trtllm-llmapi-launch`` runs once a device under MPI.
"""

from __future__ import annotations

from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from planner.errors import BackEndRefused
from planner.serving.engines.engine import DRAFTED, PORT, Arguments, InstanceCommand, Served
from planner.serving.engines.tensorrt_llm.words import CACHE, METHODS, OPTIONS_FILE
from planner.serving.layout import Deployment, InstanceGroup, InstanceLayout, InstanceSettings, Speculation


def arguments(deployment: Deployment, group: InstanceGroup, served: Served) -> Arguments:
    """The fields of ``TorchLlmArgs`` that one instance of the group sets, with ``model``.

    Raises BackEndRefused where the checkpoint is stored otherwise than the formats say.
    """
    formats, layout = deployment.formats, group.layout
    if (formats.weights, formats.of_experts) != (served.weights, served.of_experts):
        raise BackEndRefused(
            f"TensorRT-LLM reads a {served.weights} checkpoint as it is, not as {formats.weights}",
            where="/formats/weights",
            hint="name a checkpoint that is stored in this format",
        )
    found: Arguments = {
        "model": served.model,
        "tensor_parallel_size": layout.tp * layout.attention_dp,
        "pipeline_parallel_size": layout.pp,
        "context_parallel_size": layout.cp if layout.cp > 1 else None,
        "moe_expert_parallel_size": layout.ep if layout.ep > 1 else None,
        "enable_attention_dp": True if layout.attention_dp > 1 else None,
        **_settings(group, served),
        "kv_cache_config": _cache(deployment, group),
    }
    if group.role != "aggregated":
        found["cache_transceiver_config"] = {"backend": "NIXL"}
    if group.role == "prefill":
        # A prefill instance sends its keys and values after each iteration: nothing may run ahead of it.
        found["disable_overlap_scheduler"] = True
    told = {name: value for name, value in found.items() if value is not None}
    # Nothing there is the default, which captures graphs; null turns them off.
    return told if group.settings.cuda_graphs else {**told, "cuda_graph_config": None}


def _settings(group: InstanceGroup, served: Served) -> Arguments:
    settings, ranks = group.settings, group.layout.attention_dp
    found: dict[str, Any] = {
        "max_seq_len": served.longest_tokens,
        "max_batch_size": _a_rank(settings.max_num_sequences, ranks),
        "max_num_tokens": _a_rank(settings.max_num_batched_tokens, ranks),
        "enable_chunked_prefill": settings.chunked_prefill,
    }
    moe: Arguments = {} if settings.expert_exchange is None else {"backend": settings.expert_exchange}
    if settings.redundant_experts:
        slots = served.num_experts + settings.redundant_experts
        moe["load_balancer"] = {"num_slots": slots, "layer_updates_per_iter": 1}
    if moe:
        found["moe_config"] = moe
    if settings.speculation is not None:
        found["speculative_config"] = _speculation(settings.speculation, served)
    return {**found, "cuda_graph_config": graphs(settings, group.layout)}


def graphs(settings: InstanceSettings, layout: InstanceLayout) -> Arguments | None:
    """Graphs for every batch up to the limit; the default stops at 128 and takes no batch between its sizes."""
    if not settings.cuda_graphs or settings.max_num_sequences is None:
        return None
    return {"enable_padding": True, "max_batch_size": settings.max_num_sequences // layout.attention_dp}


def _a_rank(limit: int | None, ranks: int) -> int | None:
    return None if limit is None else limit // ranks


def _cache(deployment: Deployment, group: InstanceGroup) -> Arguments:
    settings = group.settings
    found = {
        "dtype": CACHE[deployment.formats.kv_cache],
        "enable_block_reuse": settings.prefix_caching,
        "free_gpu_memory_fraction": settings.memory_fraction,
        "tokens_per_block": settings.cache_block_tokens,
        "host_cache_size": settings.host_cache_bytes or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _speculation(speculation: Speculation, served: Served) -> Arguments:
    config: Arguments = {"decoding_type": METHODS[speculation.method], "max_draft_len": speculation.num_tokens}
    return {**config, "speculative_model": served.draft_model} if speculation.method in DRAFTED else config


def options_text(options: Arguments) -> str:
    """The options as YAML."""
    text = StringIO()
    yaml = YAML()
    yaml.representer.add_representer(
        type(None), lambda writer, _: writer.represent_scalar("tag:yaml.org,2002:null", "null")
    )
    yaml.dump(options, text)
    return text.getvalue()


def command(deployment: Deployment, group: InstanceGroup, served: Served, devices_per_node: int) -> InstanceCommand:
    """The launch of one instance.  Raises BackEndRefused where the checkpoint cannot be loaded in the formats."""
    told = arguments(deployment, group, served)
    model = str(told.pop("model"))
    nodes = -(-group.layout.num_devices // devices_per_node)
    file = f"{group.role}-{OPTIONS_FILE}"
    words = ["trtllm-serve", "serve", model, "--host", "0.0.0.0", "--port", PORT, "--backend", "pytorch"]
    words += ["--extra_llm_api_options", file]
    files = {file: options_text(told)}
    if nodes == 1:
        return InstanceCommand(tuple(words), files=files)
    return InstanceCommand(("trtllm-llmapi-launch", *words), nodes, tasks_per_node=devices_per_node, files=files)
