"""Asks vLLM about launch words: its own parser of ``vllm serve``, and the whole configuration that it makes of them.

Stages: ``parse`` (``make_arg_parser`` and ``validate_parsed_serve_args``), ``configure``
(``AsyncEngineArgs.create_engine_config`` with the model's ``config.json``: model, parallel, cache, scheduler,
speculative and transfer configurations and their checks of each other), ``ranks`` (as many devices as planned).  A
request with ``flags`` gets the parser's flags as facts instead.  The platform is vLLM's own CPU platform, since there
is no device, and says that it is CUDA to nobody: what vLLM checks only for CUDA devices (EPLB, the number of devices)
is not asked; a request that needs it is told so in ``facts``.  Not proved: kernels, memory, speed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planner.backends.checking.answers import FeignedModules, Refused, serve

STUBS = (
    # Servers, clients and formats of other vendors: imported by vLLM's modules, asked nothing here.
    *("aiohttp", "anthropic", "model_hosting_container_standards", "prometheus_fastapi_instrumentator", "watchfiles"),
    # Tokenizers, constrained decoding, pictures.
    *("cv2", "gguf", "lark", "llguidance", "lmformatenforcer", "mistral_common", "outlines_core", "sentencepiece"),
    *("tiktoken", "xgrammar"),
    # Messages, hashes and processes.
    *("blake3", "cbor2", "ijson", "orjson", "pythonjsonlogger", "setproctitle", "uvloop", "zmq"),
    # Kernels and compilers, which need a device.
    *("depyf", "flashinfer", "tvm_ffi"),
)


def prepare(overlay: Path) -> None:
    """Make vLLM importable on a machine without devices."""
    os.environ |= {"VLLM_LOGGING_LEVEL": "CRITICAL", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
    FeignedModules(*STUBS)
    import vllm.platforms
    from vllm.platforms.cpu import CpuPlatform

    vllm.platforms._current_platform = CpuPlatform()
    from vllm.model_executor.models import registry

    # vLLM inspects a model class in a process of its own, to keep CUDA out of the one that asks; there is none here.
    registry._run_in_subprocess = lambda asked: asked()


def parser() -> Any:
    """The parser of ``vllm serve``."""
    from vllm.entrypoints.common.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    return make_arg_parser(FlexibleArgumentParser())


def flags() -> dict[str, Any]:
    """Every argument of the parser: its words, its kind and what it takes."""
    found: dict[str, Any] = {}
    for action in parser()._actions:
        if not action.option_strings or action.dest == "help":
            continue
        kind = "value" if action.nargs is None else "list"
        if isinstance(action, argparse.BooleanOptionalAction):
            kind = "boolean"
        elif action.nargs in (0, "?"):
            kind = "switch" if action.nargs == 0 else "value"
        found[action.dest] = {"words": list(action.option_strings), "kind": kind}
        if action.choices:
            found[action.dest]["choices"] = [str(each) for each in action.choices]
    return found


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """All stages for the words of one node."""
    if request.get("flags"):
        yield "flags"
        facts["arguments"] = flags()
        return
    from vllm import AsyncEngineArgs
    from vllm.entrypoints.common.cli_args import validate_parsed_serve_args

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(request["config"]), encoding="utf-8")
        yield "parse"
        arguments = parser().parse_args([folder, *request["words"]])
        arguments.model = arguments.model_tag
        validate_parsed_serve_args(arguments)
        yield "configure"
        engine = AsyncEngineArgs.from_cli_args(arguments)
        # The tokenizer stands beside real weights; nothing of it is planned.
        engine.skip_tokenizer_init = True
        if engine.speculative_config and "model" in engine.speculative_config:
            facts["lacking"] = "a draft model's own config is not here: its speculation is not asked"
            engine.speculative_config = None
        if engine.enable_eplb:
            facts["lacking"] = "EPLB is checked on CUDA devices only"
            engine.enable_eplb, engine.eplb_config = False, type(engine.eplb_config)()
        made = engine.create_engine_config(headless=arguments.headless)
    yield "ranks"
    parallel = made.parallel_config
    facts["num_devices"] = parallel.world_size_across_dp
    facts["max_num_seqs"] = made.scheduler_config.max_num_seqs
    facts["max_num_batched_tokens"] = made.scheduler_config.max_num_batched_tokens
    facts["expert_parallel"] = parallel.enable_expert_parallel
    facts["kv_cache_dtype"] = made.cache_config.cache_dtype
    facts["quantization"] = made.model_config.quantization
    if facts["num_devices"] != request["num_devices"]:
        raise Refused(f"vLLM takes {facts['num_devices']} devices, planned are {request['num_devices']}")


if __name__ == "__main__":
    sys.argv[0] = "vllm"
    serve(stages, prepare)
