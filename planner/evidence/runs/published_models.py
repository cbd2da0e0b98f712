"""Published architectures by the names that rows use: sizes for columns that a row leaves blank.

``published_models.json`` has one entry a model: ``names``, and either ``builtin`` (a model of the catalogue) or a
``source`` with ``hf_config`` or ``model`` (as in the catalogue).  Names are compared without case, separators,
organisation and words that say how a model was trained (``lora``, ``instruct``, ``8k``).

The row wins.  Fewer layers make a shortened proxy; another vocabulary is another padding.  Another width, head count
or expert count, or more layers, is another model that borrowed the name: then nothing is taken from the entry.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any

from planner.evidence.runs.truth import TruthRow
from planner.evidence.runs.unmapped import RowUnmapped
from planner.model.builtin import builtin_model
from planner.model.hf_config import model_from_hf_config
from planner.model.model_yaml import model_from_description
from planner.model.spec import LayerRun, ModelSpec
from profiles.safe_json import load_json_text

DATA_FILE = "published_models.json"
ORGANISATION = re.compile(r"^[a-z][\w.-]*/")
REMARK = re.compile(r"\([^)]*\)")
TRAINING_WORDS = re.compile(
    r"q?lora|peft|sft|dpo|pre-?train(ing)?|fine-?tun(e|ing)|full|instruct|chat|base|hf|it|bf16|fp8|fp16|\d+k"
)
SHAPE_COLUMNS = ("layers", "hidden", "ffn_hidden", "vocab")


def published_model(row: TruthRow) -> ModelSpec | None:
    """The architecture that the row's name was published with, cut and padded as the row says.

    None where no entry has that name, where the row contradicts the entry, and where the row's own columns describe
    the model in full.
    """
    model = _named(canonical_name(row.model))
    if model is None or _contradicts(row, model) or _described(row, model):
        return None
    if row.layers is not None and row.layers < model.num_layers:
        model = shortened(model, row.layers)
    changes: dict[str, Any] = {"vocab_size": row.vocab or model.vocab_size}
    if row.sequence_length is not None and row.sequence_length > model.max_sequence_length:
        changes["max_sequence_length"] = row.sequence_length
        changes["learned_positions"] = row.sequence_length if model.learned_positions else 0
    return model.model_copy(update=changes)


def shortened(model: ModelSpec, layers: int) -> ModelSpec:
    """The first layers of a model: what vendors call a proxy.  Raises RowUnmapped where it has fewer."""
    runs: list[LayerRun] = []
    left = layers
    for run in model.layer_runs:
        count = min(run.count, left)
        if count > 0:
            runs.append(LayerRun(kind=run.kind, count=count))
        left -= count
    if left > 0:
        raise RowUnmapped("the row has more layers than the published model of its name")
    return model.model_copy(update={"layer_runs": tuple(runs), "name": f"{model.name}-{layers}-layers"})


def canonical_name(name: str) -> str:
    """A model's name without what different tables write differently."""
    plain = ORGANISATION.sub("", REMARK.sub(" ", name.lower().strip()))
    words = [word for word in re.split(r"[\s_/-]+", plain) if word]
    return "".join(word for word in words if not TRAINING_WORDS.fullmatch(word))


@cache
def published_entries() -> tuple[dict[str, Any], ...]:
    """The entries of the data file, in its order."""
    text = (files("planner.evidence.runs") / DATA_FILE).read_text(encoding="utf-8")
    return tuple(load_json_text(text, f"accuracy/{DATA_FILE}"))


@cache
def model_of_entry(index: int) -> ModelSpec:
    """The model of one entry."""
    entry = published_entries()[index]
    name, where = str(entry["names"][0]), f"accuracy/{DATA_FILE}:{entry['names'][0]}"
    if "builtin" in entry:
        return builtin_model(str(entry["builtin"]))
    if "hf_config" in entry:
        return model_from_hf_config(entry["hf_config"], name, where)
    return model_from_description(entry["model"], name, where)


@cache
def _index_of_names() -> dict[str, int]:
    return {canonical_name(name): index for index, entry in enumerate(published_entries()) for name in entry["names"]}


def _named(name: str) -> ModelSpec | None:
    index = _index_of_names().get(name)
    return None if index is None else model_of_entry(index)


def _contradicts(row: TruthRow, model: ModelSpec) -> bool:
    """Does the row state a width, or a number of heads, experts or layers, that the published model cannot have?"""
    attention = model.layer_kinds[0].attention
    moes = {(kind.moe.num_experts, kind.moe.top_k) for kind in model.layer_kinds if kind.moe is not None}
    stated = [
        (row.hidden, {model.hidden_size}),
        (row.heads, {attention.num_heads}),
        (row.kv_heads, {attention.num_kv_heads}),
        (row.experts or None, {experts for experts, _ in moes} or {1}),
        (row.topk or None, {top_k for _, top_k in moes} or {1}),
    ]
    if not moes:
        stated.append((row.ffn_hidden, {kind.mlp.intermediate_size for kind in model.layer_kinds if kind.mlp}))
    return (row.layers or 0) > model.num_layers or any(
        value is not None and value not in known for value, known in stated
    )


def _described(row: TruthRow, model: ModelSpec) -> bool:
    """Do the row's columns say everything?  They have no place for head and expert widths and latent attention."""
    attention = model.layer_kinds[0].attention
    if attention.kind == "mla" or model.has_experts:
        return False
    if attention.num_heads * attention.head_dim != model.hidden_size:
        return False
    grouped = attention.num_kv_heads != attention.num_heads
    needed = (*SHAPE_COLUMNS, "kv_heads") if grouped else SHAPE_COLUMNS
    return all(getattr(row, name) is not None for name in needed)
