"""The process that traces: reads a ``config.json`` on its standard input, writes the parts of a ``ModelSpec``.

Its standard output is one JSON document: ``{"spec": {...}}``, or ``{"error": "...", "hint": "..."}``.  The class is the
one that transformers itself registers for the ``model_type``; code that a config brings along is never run.
"""

from __future__ import annotations

import contextlib
import json
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from planner.model.traced.records import Trace

AUTO_CLASSES = (
    "AutoModelForCausalLM",
    "AutoModelForImageTextToText",
    "AutoModelForMultimodalLM",
    "AutoModelForSeq2SeqLM",
)
"""In this order: the first whose mapping has the config's class."""
ENCODER = "an encoder beside the decoder: two sequences are not traced"


class Untraceable(Exception):
    """Why there is no trace: a sentence for the user."""


def main() -> None:
    """Answer one question."""
    warnings.simplefilter("ignore")
    answer: dict[str, Any]
    with contextlib.redirect_stdout(sys.stderr):
        try:
            answer = {"spec": traced(json.load(sys.stdin))}
        except Untraceable as error:
            answer = {"error": str(error)}
    sys.stdout.write(json.dumps(answer))


def traced(values: dict[str, Any]) -> dict[str, Any]:
    """The parts of a ``ModelSpec`` that the module of this config gives.  Raises Untraceable."""
    import torch
    import transformers

    from planner.model.traced.fitting import lengths_within
    from planner.model.traced.recording import record
    from planner.model.traced.segments import parts_of

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    attends: dict[str, Any] = {}
    _give_attention(attends)
    config, auto_class = _config(values)
    module, attention, experts = _built(config, auto_class)
    lengths = lengths_within(_positions(config))
    traces = _run(module, lengths, lambda length, masked: record(module, length, _forward(module, masked), attends))
    lists = {path: len(each) for path, each in module.named_modules() if isinstance(each, torch.nn.ModuleList)}
    sizes = {path: sum(p.numel() for p in module.get_submodule(path).parameters()) for path in lists}
    owners = {path: int(each.untyped_storage()._cdata) for path, each in module.named_parameters()}
    try:
        parts = parts_of(traces, sizes, owners, _head(module))
    except ValueError as error:
        raise Untraceable(f"{type(module).__name__}: {error}") from error
    parts["traced"] |= {
        "class_name": type(module).__name__,
        "auto_class": auto_class,
        "checkpoints": _recomputes(module, parts["traced"]["layers"]),
        "attention": attention,
        "experts": experts,
        "software": f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}",
        "lengths": list(lengths),
    }
    parts["max_sequence_length"] = _positions(config)
    parts["total_parameters"] = sum(parameter.numel() for parameter in module.parameters())
    return parts


def _config(values: dict[str, Any]) -> tuple[Any, str]:
    import transformers
    from transformers.models.auto import modeling_auto as auto

    values = dict(values)
    kind = values.pop("model_type")
    try:
        config = transformers.AutoConfig.for_model(kind, **values)
    except Exception as error:
        said = " ".join(str(error).split())[:200]
        raise Untraceable(f"transformers {transformers.__version__} makes no config of it ({said})") from error
    mappings = {
        "AutoModelForCausalLM": auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        "AutoModelForImageTextToText": auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
        "AutoModelForMultimodalLM": auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES,
        "AutoModelForSeq2SeqLM": auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    }
    found = next((name for name in AUTO_CLASSES if kind in mappings[name]), None)
    if found is None:
        raise Untraceable(f"transformers {transformers.__version__} has no language model of the type {kind!r}")
    if getattr(config, "is_encoder_decoder", False) or found == "AutoModelForSeq2SeqLM":
        raise Untraceable(f"it has {ENCODER}")
    return config, found


def _built(config: Any, auto_class: str) -> tuple[Any, str, str]:
    """The module on the meta device, and how its attention and its experts run."""
    import torch
    import transformers

    said = ""
    for attention, experts in (("sdpa", "batched_mm"), ("sdpa", ""), ("eager", "batched_mm"), ("eager", "")):
        ways = {"attn_implementation": attention} | ({"experts_implementation": experts} if experts else {})
        try:
            with torch.device("meta"):
                module = getattr(transformers, auto_class).from_config(config, dtype=torch.float32, **ways)
            return module.eval(), attention, experts or "eager"
        except Exception as error:
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    raise Untraceable(f"its class does not build on the meta device ({said})")


def _give_attention(attends: dict[str, Any]) -> None:
    """Puts the recorder in the place of torch's attention and of transformers' masks, in this process."""
    import torch
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    def attention(module: Any, q: Any, k: Any, v: Any, mask: Any = None, **said: Any) -> tuple[Any, None]:
        window = said.get("sliding_window") or getattr(mask, "window_of_trace", None)
        causal = said.get("is_causal")
        causal = getattr(module, "is_causal", True) if causal is None else causal
        out = attends["recorder"].attend(q, k, v, window, causal=bool(causal))
        return out.transpose(1, 2).contiguous(), None

    def product(q: Any, k: Any, v: Any, attn_mask: Any = None, *_: Any, is_causal: bool = False, **__: Any) -> Any:
        window = getattr(attn_mask, "window_of_trace", None)
        return attends["recorder"].attend(q, k, v, window, causal=is_causal or attn_mask is not None or q.shape[2] > 1)

    def mask(*_: Any, q_length: Any = None, kv_length: Any = None, local_size: Any = None, **__: Any) -> Any:
        if not local_size:
            return None
        made = torch.empty(1, 1, int(q_length or 1), int(kv_length or 1), dtype=torch.bool, device="meta")
        made.window_of_trace = int(local_size)  # type: ignore[attr-defined]
        return made

    ALL_ATTENTION_FUNCTIONS.register("sdpa", attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register("sdpa", mask)
    torch.nn.functional.scaled_dot_product_attention = product  # type: ignore[assignment]


def _positions(config: Any) -> int:
    text = config.get_text_config()
    for name in ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length"):
        found = getattr(text, name, None)
        if isinstance(found, int) and found > 0:
            return found
    return 2**20  # nothing bounds the sequence: no table of positions


def _run(module: Any, lengths: Sequence[int], traced_at: Callable[[int, bool], Trace]) -> list[Trace]:
    """A trace of every length: with a mask of padding, else without (a class looks into the one or the other)."""
    said = ""
    for masked in (True, False):
        try:
            return [traced_at(length, masked) for length in lengths]
        except Exception as error:
            said = said or f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    raise Untraceable(f"{type(module).__name__} does not run on the meta device with token ids alone ({said})")


def _forward(module: Any, masked: bool) -> Callable[[int], Any]:
    import torch

    def run(length: int) -> Any:
        tokens = torch.zeros(1, length, dtype=torch.long, device="meta")
        mask = {"attention_mask": torch.ones_like(tokens)} if masked else {}
        return module(input_ids=tokens, use_cache=False, **mask)

    return run


def _recomputes(module: Any, path: str) -> bool:
    """Whether every layer is one that transformers recomputes, in the list where our scripts look for it."""
    from transformers.modeling_layers import GradientCheckpointingLayer

    base, layers = module.base_model, module.get_submodule(path)
    found = getattr(base, "layers", None) if hasattr(base, "layers") else getattr(base, "h", None)
    return (
        found is not None and found is layers and all(isinstance(each, GradientCheckpointingLayer) for each in layers)
    )


def _head(module: Any) -> str:
    """Path of the head, empty where the class names none."""
    head = module.get_output_embeddings()
    return next((path for path, each in module.named_modules() if each is head), "") if head is not None else ""


if __name__ == "__main__":
    main()
