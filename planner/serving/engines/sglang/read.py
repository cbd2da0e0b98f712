"""SGLang's arguments and launch words as an instance of a deployment: the inverse of ``write``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.errors import DocumentInvalid
from planner.serving.engines.engine import DRAFTED, Arguments, ReadInstance, Served
from planner.serving.engines.reading import Reading
from planner.serving.engines.sglang.words import ALGORITHMS, CACHE_READ, GIGABYTE, ONLINE, flags
from planner.serving.layout import Formats, InstanceGroup, InstanceLayout, InstanceSettings, Speculation
from planner.serving.words import Role, WeightFormat

_PLACES = ("host", "port", "nnodes", "node_rank", "dist_init_addr", "disaggregation_bootstrap_port", "dtype")
"""Arguments that say where an instance runs, or what every deployment says alike."""
_STARTS = (("python", "-m", "sglang.launch_server"), ("python3", "-m", "sglang.launch_server"), ("sglang", "serve"))
_MADE: dict[str, WeightFormat] = {word: number_format for number_format, word in ONLINE.items()}
_METHODS = {word: method for method, word in ALGORITHMS.items()}


def read_words(words: Sequence[str], files: Mapping[str, str]) -> Arguments:
    """The arguments of ``python -m sglang.launch_server ...``; ``files`` is not read.  Raises DocumentInvalid."""
    start = next((each for each in _STARTS if tuple(words[: len(each)]) == each), None)
    if start is None:
        begun = " ".join(words[:3])
        raise DocumentInvalid("this starts no SGLang server", where=begun, hint="begin with sglang serve")
    arguments, positional = flags().from_words(words[len(start) :])
    if positional or not arguments.get("model_path"):
        raise DocumentInvalid("SGLang takes one --model-path", where="--model-path", hint="name the model there")
    return arguments


def read_arguments(arguments: Mapping[str, Any], served: Served) -> ReadInstance:
    """One instance from the fields of ``ServerArgs``; what is not there is its default.  Raises DocumentInvalid."""
    given = Reading("SGLang", arguments)
    for name in _PLACES:
        given.take(name)
    role, layout = _role(given), _layout(given)
    speculation, drafted = _speculation(given, served)
    group = InstanceGroup(role=role, layout=layout, settings=_settings(given, speculation))
    said = replace(drafted, model=given.take("model_path", served.model), longest_tokens=given.take("context_length"))
    formats = _formats(given, served)
    return ReadInstance(group, formats, said, given.rest())


def _role(given: Reading) -> Role:
    mode = given.take("disaggregation_mode", "null")
    given.take("disaggregation_transfer_backend")
    role: Role = mode if mode in ("prefill", "decode") else "aggregated"
    return role


def _layout(given: Reading) -> InstanceLayout:
    devices, ranks, cp = given.take("tp_size", 1), given.take("attn_dp_size", 1), given.take("attn_cp_size", 1)
    if given.take("enable_dp_attention"):
        # The old spelling: --dp-size N --enable-dp-attention, until 2026-12-31 (srt/arg_groups/fields/parallel.py:192).
        ranks = given.take("dp_size", 1)
    if given.take("enable_prefill_cp", False) != (cp > 1):
        raise DocumentInvalid("cp needs --attn-cp-size and --enable-prefill-cp", where="attn_cp_size", hint="give both")
    given.take("cp_strategy")
    if devices % (ranks * cp):
        raise DocumentInvalid(
            f"tp_size = {devices} is not a multiple of attention_dp x cp = {ranks * cp}",
            where="tp_size",
            hint="change one",
        )
    return given.made(
        InstanceLayout,
        tp=devices // (ranks * cp),
        attention_dp=ranks,
        cp=cp,
        dcp=given.take("dcp_size", 1),
        pp=given.take("pp_size", 1),
        ep=given.take("ep_size", 1),
    )


def _settings(given: Reading, speculation: Speculation | None) -> InstanceSettings:
    chunk, tokens = given.take("chunked_prefill_size"), given.take("max_prefill_tokens")
    whole = chunk == -1
    eager = [given.take(f"disable_{phase}_cuda_graph", False) for phase in ("prefill", "decode")]
    host = given.take("hicache_size", 0) if given.take("enable_hierarchical_cache", False) else 0
    redundant = given.take("ep_num_redundant_experts", 0)
    given.take("enable_eplb")
    return given.made(
        InstanceSettings,
        max_num_sequences=given.take("max_running_requests"),
        max_num_batched_tokens=tokens if whole else chunk,
        chunked_prefill=not whole,
        memory_fraction=given.take("mem_fraction_static"),
        cache_block_tokens=given.take("page_size"),
        prefix_caching=not given.take("disable_radix_cache", False),
        cuda_graphs=not all(eager),
        host_cache_bytes=host * GIGABYTE,
        speculation=speculation,
        expert_exchange=given.take("moe_a2a_backend"),
        redundant_experts=redundant,
    )


def _speculation(given: Reading, served: Served) -> tuple[Speculation | None, Served]:
    word = given.take("speculative_algorithm")
    if word is None:
        return None, replace(served, draft_model=None, draft_parameters=None)
    if word not in _METHODS or given.take("speculative_eagle_topk", 1) != 1:
        raise DocumentInvalid(
            f"speculation by {word}, or by a tree of drafts, is not read",
            where="speculative_algorithm",
            hint=f"one of {', '.join(_METHODS)} with --speculative-eagle-topk 1",
        )
    steps, drafted = given.take("speculative_num_steps"), given.take("speculative_num_draft_tokens")
    draft = given.take("speculative_draft_model_path")
    method = "mtp" if word == "EAGLE" and draft is None else _METHODS[word]
    parameters = served.draft_parameters if method in DRAFTED else None
    tokens = steps if steps is not None else drafted and drafted - 1
    speculation = given.made(Speculation, method=method, num_tokens=tokens, draft_parameters=parameters)
    return speculation, replace(served, draft_model=draft, draft_parameters=parameters)


def _formats(given: Reading, served: Served) -> Formats:
    word = given.take("kv_cache_dtype", "auto")
    kv_cache = CACHE_READ.get(word)
    if kv_cache is None:
        raise DocumentInvalid(f"kv_cache_dtype {word} is none of a deployment's", where="kv_cache_dtype")
    made = given.take("quantization")
    if made is None or served.weights != "bf16":
        return given.made(Formats, weights=served.weights, experts=served.experts, kv_cache=kv_cache)
    if made not in _MADE:
        raise DocumentInvalid(
            f"quantization {made} says how a checkpoint is stored, which is not known here",
            where="quantization",
            hint="say how the checkpoint is stored, and leave the argument out: SGLang reads it from the checkpoint",
        )
    return given.made(Formats, weights=_MADE[made], kv_cache=kv_cache)
