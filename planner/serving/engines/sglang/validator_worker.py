"""Asks SGLang about launch words: its own parser, and everything that it resolves and checks before it starts.

Stages: ``parse`` (``prepare_server_args``), ``resolve`` (``ServerArgs.resolve_once`` with the model's ``config.json``),
``check`` (``check_server_args``), ``ranks`` (as many devices as planned).  A request with ``flags`` gets the parser's
flags as facts instead.  The device is ``cpu``, since there is none: what SGLang checks only for CUDA devices is not
asked.  Not proved: kernels, memory, speed.
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
    # Servers, clients and formats of other vendors: imported by SGLang's modules, asked nothing here.
    *("aiohttp", "anthropic", "modelscope", "prometheus_fastapi_instrumentator", "watchfiles"),
    # Tokenizers, constrained decoding, pictures and sound.
    *("cv2", "decord", "lark", "llguidance", "mistral_common", "openai_harmony", "outlines", "outlines_core"),
    *("sentencepiece", "soundfile", "tiktoken", "xgrammar"),
    # Messages, hashes and processes.
    *("blake3", "cbor2", "pybase64", "setproctitle", "uvloop", "zmq", "IPython"),
    # Kernels and compilers, which need a device.
    *("flashinfer", "sgl_kernel", "torchao", "triton", "tvm_ffi"),
)


def prepare(overlay: Path) -> None:
    """Make SGLang importable on a machine without devices."""
    os.environ |= {"HF_HUB_OFFLINE": "1"}
    FeignedModules(*STUBS)
    from transformers.utils.import_utils import is_torchvision_available

    # transformers must not take the feigned one for the real one; it asks once and remembers.
    is_torchvision_available()
    FeignedModules("torchvision")


def flags() -> dict[str, Any]:
    """Every argument of the parser: its words, its kind and what it takes."""
    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    found: dict[str, Any] = {}
    for action in parser._actions:
        if not action.option_strings or action.dest == "help":
            continue
        kind = "value" if action.nargs in (None, "?") else "list"
        if isinstance(action, argparse.BooleanOptionalAction):
            kind = "boolean"
        elif action.nargs == 0:
            kind = "switch"
        each = found.setdefault(action.dest, {"words": [], "kind": kind})
        each["words"] += action.option_strings
        if action.choices:
            each["choices"] = [str(choice) for choice in action.choices]
    return found


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """All stages for the words of one node."""
    if request.get("flags"):
        yield "flags"
        facts["arguments"] = flags()
        return
    from sglang.srt.server_args import prepare_server_args

    words = list(request["words"])
    if "--speculative-draft-model-path" in words:
        facts["lacking"] = "a draft model's own config is not here: its speculation is not asked"
        words = list(_without_speculation(words))
    if "nvfp4_online" in words:
        facts["lacking"] = "SGLang makes nvfp4 on Blackwell devices only: the quantisation is not asked"
        at = words.index("nvfp4_online")
        del words[at - 1 : at + 1]
    config = dict(request["config"])
    if config.get("quantization_config", {}).get("quant_method") == "mxfp4":
        facts["lacking"] = "SGLang has mxfp4 on CUDA devices only: the checkpoint's format is not asked"
        del config["quantization_config"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config), encoding="utf-8")
        words[words.index("--model-path") + 1] = folder
        yield "parse"
        made = prepare_server_args([*words, "--device", "cpu", "--skip-tokenizer-init"])
        yield "resolve"
        made.resolve_once()
        yield "check"
        made.check_server_args()
    yield "ranks"
    from sglang.srt.arg_groups.overrides import resolved_view

    view = resolved_view(made)
    facts["num_devices"] = made.tp_size * made.pp_size
    for name in ("tp_size", "attn_dp_size", "ep_size", "max_running_requests", "chunked_prefill_size", "quantization"):
        facts[name] = getattr(view, name, None)
    if facts["num_devices"] != request["num_devices"]:
        raise Refused(f"SGLang takes {facts['num_devices']} devices, planned are {request['num_devices']}")


def _without_speculation(words: list[str]) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        if word.startswith("--speculative-"):
            next(rest)
        else:
            yield word


if __name__ == "__main__":
    sys.argv[0] = "sglang"
    serve(stages, prepare)
