"""How a checkpoint stores its weights, by the ``quantization_config`` of its Hugging Face ``config.json``.

Sources of the words: ``transformers`` 5.23 ``utils/quantization_config.py`` (quant_method and the keys of each), the
compressed-tensors format (``config_groups``), NVIDIA ModelOpt's ``hf_quant_config.json`` (``quant_algo``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.serving.words import WeightFormat
from profiles.errors import DocumentInvalid

CheckpointFormats = tuple[WeightFormat, WeightFormat | None]
"""Of dense weights, and of routed experts where theirs differs."""
_WHERE = "quantization_config"
_HINT = "say the format with --checkpoint FORMAT[,EXPERTS]"


def checkpoint_formats(config: Mapping[str, Any]) -> CheckpointFormats:
    """The formats of a checkpoint with this ``config.json``; without a ``quantization_config`` 16 bit.

    Raises DocumentInvalid for a method or a width that no engine here has.
    """
    said = config.get("quantization_config")
    if said is None:
        text = config.get("text_config")
        said = text.get("quantization_config") if isinstance(text, Mapping) else None
    if said is None:
        return "bf16", None
    if not isinstance(said, Mapping):
        raise DocumentInvalid("quantization_config must be a mapping", where=_WHERE, hint=_HINT)
    method = str(said.get("quant_method", "")).lower()
    if method == "fp8":
        return ("fp8_block" if said.get("weight_block_size") else "fp8"), None
    if method == "mxfp4":
        return "bf16", "mxfp4"  # gpt-oss: the experts alone are quantised
    if method in {"awq", "gptq"}:
        return _whole_numbers(said.get("bits")), None
    if method == "compressed-tensors":
        return _compressed(said), None
    if method in {"modelopt", "modelopt_fp4"} or "quant_algo" in said:
        return _modelopt(said), None
    raise DocumentInvalid(
        f"weights quantised by {method or 'an unnamed method'} are not known", where=_WHERE, hint=_HINT
    )


def _whole_numbers(bits: object) -> WeightFormat:
    if bits == 4:
        return "int4"
    if bits == 8:
        return "int8"
    raise DocumentInvalid(f"weights of {bits} bits are not known", where=_WHERE, hint=_HINT)


def _compressed(said: Mapping[str, Any]) -> WeightFormat:
    groups = said.get("config_groups")
    first = next(iter(groups.values()), None) if isinstance(groups, Mapping) else None
    weights = first.get("weights") if isinstance(first, Mapping) else None
    if not isinstance(weights, Mapping):
        raise DocumentInvalid("config_groups say no format of weights", where=_WHERE, hint=_HINT)
    bits, kind, strategy = weights.get("num_bits"), weights.get("type"), weights.get("strategy")
    if kind == "float" and bits == 8:
        return "fp8_block" if strategy == "block" else "fp8"
    if kind == "float" and bits == 4:
        return "mxfp4" if weights.get("group_size") == 32 else "nvfp4"
    return _whole_numbers(bits)


def _modelopt(said: Mapping[str, Any]) -> WeightFormat:
    algorithm = str(said.get("quant_algo", "")).upper()
    known: dict[str, WeightFormat] = {"FP8": "fp8", "NVFP4": "nvfp4", "MXFP4": "mxfp4", "W4A16_AWQ": "int4"}
    if algorithm in known:
        return known[algorithm]
    raise DocumentInvalid(
        f"the algorithm {algorithm or 'of quantization_config'} is not known", where=_WHERE, hint=_HINT
    )
