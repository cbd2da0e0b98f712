"""The model of a measured run: the row's own columns, a built-in or a published model of that name.

* A name with routed experts or latent attention (deepseek-v3, qwen3-235b-a22b, ...) needs more than the columns have:
  the built-in model is used, cut to the row's layers where the row ran a shorter proxy.
* Columns that a row leaves blank are those of the published architecture of its name (``published_models``), as long
  as the columns that it has agree with it.
* Otherwise the columns describe the model.  Whether its feed-forward is gated, and whether embedding and head share
  weights, is what comes nearest to the row's ``params_b``; without ``params_b`` the family of the name decides.
* ``kv_heads`` blank = as many as heads.  Megatron-LM's own tests leave the feed-forward width and the vocabulary to
  Megatron's defaults (``arguments.py``: 4 h, or 8/3 h rounded down to 64 when gated; GPT-2's 50,257 padded to
  128 tp).

A row whose columns miss its stated parameter count by more than 15 % is not predicted.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from planner.errors import DocumentInvalid
from planner.evidence.runs.flavours import Flavour
from planner.evidence.runs.published_models import published_model, shortened
from planner.evidence.runs.truth import TruthRow
from planner.evidence.runs.unmapped import RowUnmapped
from planner.model.builtin import builtin_model, builtin_models
from planner.model.model_yaml import model_from_description
from planner.model.parameters import total_parameters
from planner.model.spec import ModelSpec

BUILTIN_NAMES: tuple[tuple[str, str], ...] = (
    (r"^deepseek[-_]?v3(\b|-671b|$)", "deepseek-v3"),
    (r"^deepseek[-_]?v2(-236b)?$", "deepseek-v2"),
    (r"^qwen3[-_]235b", "qwen3-235b-a22b"),
    (r"^qwen3[-_]30b", "qwen3-30b-a3b"),
    (r"^gpt[-_]?oss[-_]120b", "gpt-oss-120b"),
    (r"^gpt[-_]?oss[-_]20b", "gpt-oss-20b"),
    (r"^mixtral[-_]8x7b$", "mixtral-8x7b"),
    (r"^mixtral[-_]8x22b$", "mixtral-8x22b"),
    (r"^kimi[-_]k2", "kimi-k2"),
    (r"^glm[-_]4\.5$", "glm-4.5"),
    (r"^nemotron-(3-nano|v3 nano 30b)", "nemotron-3-nano-30b-a3b"),
    (r"^nemotron-3-super", "nemotron-3-super-120b-a12b"),
    (r"^qwen3-next-80b", "qwen3-next-80b-a3b"),
)
UNSUPPORTED: tuple[tuple[str, str], ...] = (
    (r"\bt5\b|t5[-_:]|^t5", "encoder-decoder models are not modelled"),
    (r"multimodal|llava|mimo|vlm|clip|dit\b|flux|diffusion|whisper", "the row does not describe its other towers"),
    (r"switch|dlrm|retinanet|unet|ssd\b|rnnt|resnet", "not a decoder of the kinds that are modelled"),
)
HYBRID = re.compile(r"mamba|hybrid|nemotron-?(h|v3|-3)|qwen3-next|retro")
"""Names of models whose layers the columns of a row do not describe."""
PLAIN_MLP = re.compile(r"gpt|bloom|opt|mpt|pythia|starcoder|bert|gopher|mt-nlg|megatron|neox|falcon|turing", re.I)
SQUARED_RELU = re.compile(r"nemotron", re.I)
ROTARY_PLAIN = re.compile(r"pythia|neox|falcon|nemotron", re.I)
TIED = re.compile(r"gpt|bloom|opt|mpt|bert|gemma|mt-nlg|megatron", re.I)
FLAG = re.compile(r"(?P<name>[a-z][a-z0-9-]+)=(?P<value>[^;\s]+)")
PARAMETER_TOLERANCE = 0.15
WIDE_MODEL = 2048
MEGATRON_VOCABULARY = 50257
BERT_VOCABULARY = 30522


def model_of_row(row: TruthRow, flavour: Flavour) -> ModelSpec:
    """The model of a row.  Raises RowUnmapped."""
    name = row.model.lower().strip()
    for pattern, reason in UNSUPPORTED:
        if re.search(pattern, name):
            raise RowUnmapped(reason)
    builtin = _builtin(row, name)
    if builtin is not None:
        return builtin.model_copy(update={"mtp": None}) if "w/o MTP" in row.notes else builtin
    if HYBRID.search(name):
        raise RowUnmapped("hybrid (state-space) layers are not in the columns")
    published = None if flavour.megatron_defaults else published_model(row)
    if published is not None:
        _check_size(published, row, "the published model of that name has another size than params_b")
        return published
    return _from_columns(row, flavour, name)


def flags_of(row: TruthRow) -> dict[str, str]:
    """Command-line flags that the notes quote: ``name=value``, lower case, dashes."""
    return {match["name"]: match["value"] for match in FLAG.finditer(row.notes)}


def _builtin(row: TruthRow, name: str) -> ModelSpec | None:
    for pattern, known in BUILTIN_NAMES:
        if re.search(pattern, name) and known in builtin_models():
            model = _load_builtin(known)
            if row.hidden not in (None, model.hidden_size):
                return None
            return model if row.layers in (None, model.num_layers) else shortened(model, row.layers or 1)
    return None


@cache
def _load_builtin(name: str) -> ModelSpec:
    return builtin_model(name)


def _from_columns(row: TruthRow, flavour: Flavour, name: str) -> ModelSpec:
    flags = flags_of(row)
    if "multi-latent-attention" in flags:
        raise RowUnmapped("latent attention outside the built-in models: head widths are not in the columns")
    base = _description(row, flavour, flags)
    choices = _choices(row, name, flags, flavour)
    models = [_build(base, choice, row) for choice in choices]
    wanted = (row.params_b or 0.0) * 1e9
    best = min(models, key=lambda model: abs(total_parameters(model) - wanted)) if wanted else models[0]
    _check_size(best, row, "the columns describe a model of another size than params_b")
    return best


def _check_size(model: ModelSpec, row: TruthRow, reason: str) -> None:
    if row.params_b is None:
        return
    if abs(total_parameters(model) / (row.params_b * 1e9) - 1.0) > PARAMETER_TOLERANCE:
        raise RowUnmapped(reason)


def _description(row: TruthRow, flavour: Flavour, flags: dict[str, str]) -> dict[str, Any]:
    missing = [name for name in ("layers", "hidden") if getattr(row, name) is None]
    if not flavour.megatron_defaults:
        missing += [name for name in ("ffn_hidden", "vocab") if getattr(row, name) is None]
    if missing:
        raise RowUnmapped(f"the model is not described ({', '.join(missing)})")
    if row.sequence_length is None:
        raise RowUnmapped("the sequence length is not stated")
    heads = row.heads or _usual_heads(row.hidden or 1)
    described: dict[str, Any] = {
        "num_layers": row.layers,
        "hidden_size": row.hidden,
        "num_heads": heads,
        "num_kv_heads": row.kv_heads or heads,
        "vocab_size": row.vocab or _megatron_vocabulary(row, flags),
        "max_sequence_length": row.sequence_length,
        "mtp_layers": int(flags.get("mtp-num-layers", "0")) if flags.get("mtp-num-layers", "0").isdigit() else 0,
    }
    if (row.experts or 0) > 1:
        described["moe"] = _experts(row, flags)
    return described


def _usual_heads(hidden: int) -> int:
    """Heads of a model that does not state them: 128 wide, 64 below a width of 2,048; one where neither divides."""
    widths = (128, 64, 96, 80) if hidden >= WIDE_MODEL else (64, 128, 96, 80)
    return next((hidden // width for width in widths if hidden % width == 0), 1)


def _experts(row: TruthRow, flags: dict[str, str]) -> dict[str, Any]:
    if row.topk is None and "moe-router-topk" not in flags:
        raise RowUnmapped("the number of experts a token reaches is not stated")
    if "moe-layer-freq" in flags:
        raise RowUnmapped("a pattern of dense and routed layers is not in the columns")
    moe: dict[str, Any] = {"num_experts": row.experts, "top_k": row.topk or int(flags["moe-router-topk"])}
    for flag, key in (
        ("moe-ffn-hidden-size", "intermediate_size"),
        ("moe-shared-expert-intermediate-size", "shared_intermediate_size"),
    ):
        if flags.get(flag, "").isdigit():
            moe[key] = int(flags[flag])
    return moe


def _megatron_vocabulary(row: TruthRow, flags: dict[str, str]) -> int:
    """Megatron pads its vocabulary to a multiple of 128 tp; without a flag the tests use GPT-2's BPE, or BERT's."""
    default = BERT_VOCABULARY if re.search(r"\bbert", row.model, re.IGNORECASE) else MEGATRON_VOCABULARY
    stated = flags.get("vocab-size", "")
    unit = flags.get("make-vocab-size-divisible-by", "")
    multiple = (int(unit) if unit.isdigit() else 128) * (row.tp or 1)
    return -(-(int(stated) if stated.isdigit() else default) // multiple) * multiple


def _choices(row: TruthRow, name: str, flags: dict[str, str], flavour: Flavour) -> list[dict[str, Any]]:
    """Ways to fill in what the columns leave open, the one that the name suggests first."""
    if flavour.megatron_defaults:
        return [
            {
                "gated": flags.get("swiglu") == "True",
                "tied": flags.get("untie-embeddings-and-output-weights") != "True",
            }
        ]
    squared = SQUARED_RELU.search(name) is not None
    gated = not squared and PLAIN_MLP.search(name) is None
    tied = TIED.search(name) is not None
    stated = re.search(r"tie_emb=(True|False)", row.notes)
    ties = [stated[1] == "True"] if stated else [tied, not tied]
    found = [{"gated": gated, "tied": tie} for tie in ties]
    if row.params_b is not None and not squared:
        found += [{"gated": not gated, "tied": tie} for tie in ties]
    return found


def _build(base: dict[str, Any], choice: dict[str, Any], row: TruthRow) -> ModelSpec:
    gated = bool(choice["gated"])
    hidden = int(base["hidden_size"])
    width = row.ffn_hidden or (int(4 * hidden * 2 / 3) // 64 * 64 if gated else 4 * hidden)
    plain = "squared_relu" if SQUARED_RELU.search(row.model) else "gelu"
    rotary = gated or ROTARY_PLAIN.search(row.model) is not None
    description = {
        **base,
        "intermediate_size": width,
        "mlp": "swiglu" if gated else plain,
        "norm": "rms" if gated else "layer",
        "bias": not gated and plain == "gelu",
        "position": "rope" if rotary else "learned",
        "tie_embeddings": bool(choice["tied"]),
    }
    try:
        model = model_from_description(description, row.model, row.id)
    except DocumentInvalid as error:
        raise RowUnmapped(f"the columns describe no possible model: {str(error).splitlines()[0]}") from None
    return _bidirectional(model) if re.search(r"\bbert|bert[-_:]", row.model, re.IGNORECASE) else model


def _bidirectional(model: ModelSpec) -> ModelSpec:
    kinds = tuple(
        kind.model_copy(update={"attention": kind.attention.model_copy(update={"causal": False})})
        for kind in model.layer_kinds
    )
    return model.model_copy(update={"layer_kinds": kinds})
