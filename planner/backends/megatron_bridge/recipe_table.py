"""The recipes of Megatron-Bridge's release: what each sets, as ``python -m tests.contract.bridge_recipes`` found it.

A model is its Hugging Face name (``hf``) or the class of its provider (``provider``); paths are ``section.field``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from planner.backends.megatron_bridge.version import BRIDGE_VERSION
from planner.model.builtin import builtin_model
from planner.model.python_values import Thing
from planner.model.spec import ModelSpec

LIBRARY, BENCHMARK = "recipes", "perf_recipes"
_CATALOGUE = {
    "allenai/OLMo-2-1124-13B": "olmo-2-13b",
    "bigscience/bloom": "bloom-176b",
    "deepseek-ai/DeepSeek-V2": "deepseek-v2",
    "deepseek-ai/DeepSeek-V3": "deepseek-v3",
    "EleutherAI/gpt-neox-20b": "gpt-neox-20b",
    "facebook/opt-66b": "opt-66b",
    "google/gemma-2-27b": "gemma-2-27b",
    "google/gemma-3-27b-it": "gemma-3-27b",
    "meta-llama/Llama-2-13b-hf": "llama-2-13b",
    "meta-llama/Llama-2-70b-hf": "llama-2-70b",
    "meta-llama/Llama-2-7b-hf": "llama-2-7b",
    "meta-llama/Llama-3.1-405B": "llama-3.1-405b",
    "meta-llama/Llama-3.1-70B": "llama-3.1-70b",
    "meta-llama/Llama-3.1-8B": "llama-3.1-8b",
    "meta-llama/Llama-3.2-1B": "llama-3.2-1b",
    "meta-llama/Llama-3.2-3B": "llama-3.2-3b",
    "meta-llama/Meta-Llama-3-70B": "llama-3.1-70b",
    "meta-llama/Meta-Llama-3-8B": "llama-3.1-8b",
    "meta-llama/Meta-Llama-3.1-405B": "llama-3.1-405b",
    "meta-llama/Meta-Llama-3.1-70B": "llama-3.1-70b",
    "meta-llama/Meta-Llama-3.1-8B": "llama-3.1-8b",
    "microsoft/phi-4": "phi-4",
    "mistralai/Mistral-7B-v0.1": "mistral-7b",
    "mistralai/Mixtral-8x22B-v0.1": "mixtral-8x22b",
    "mistralai/Mixtral-8x7B-v0.1": "mixtral-8x7b",
    "moonshotai/Kimi-K2-Instruct": "kimi-k2",
    "openai/gpt-oss-120b": "gpt-oss-120b",
    "openai/gpt-oss-20b": "gpt-oss-20b",
    "openai-community/gpt2-xl": "gpt2-xl",
    "Qwen/Qwen2.5-72B": "qwen2.5-72b",
    "Qwen/Qwen2.5-7B": "qwen2.5-7b",
    "Qwen/Qwen3-235B-A22B": "qwen3-235b-a22b",
    "Qwen/Qwen3-30B-A3B": "qwen3-30b-a3b",
    "Qwen/Qwen3-32B": "qwen3-32b",
    "Qwen/Qwen3-8B": "qwen3-8b",
    "zai-org/GLM-4.5": "glm-4.5",
    "zai-org/GLM-4.5-Air": "glm-4.5-air",
}
"""Hugging Face names whose config.json has the shapes of a built-in model."""
_SAME_SHAPES = ("base", "instruct", "hf", "chat", "it")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe function: its package, and the paths and values of the configuration that it gives."""

    name: str
    package: str
    settings: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Table:
    recipes: Mapping[tuple[str, str], Mapping[str, Any]]
    common: Mapping[str, Any]
    fields: Mapping[str, frozenset[str]]


@cache
def _table() -> _Table:
    path = Path(__file__).with_name(f"recipes_{BRIDGE_VERSION.replace('.', '_')}.jsonl")
    head, *lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    recipes = {
        (package, name): line["says"] for line in lines for package, names in line["names"].items() for name in names
    }
    fields = {section: frozenset(names) for section, names in head["fields"].items()}
    return _Table(recipes, head["common"], fields)


def recipe_named(name: str, first: str = LIBRARY) -> Recipe | None:
    """The recipe of a function's name, of the package ``first`` where both have one."""
    packages = (first, *(each for each in (LIBRARY, BENCHMARK) if each != first))
    table = _table()
    for package in packages:
        says = table.recipes.get((package, name))
        if says is not None:
            merged = {**table.common, **says}
            return Recipe(name, package, {path: value for path, value in merged.items() if value is not None})
    return None


def recipe_names(package: str | None = None) -> tuple[str, ...]:
    """Names of all recipes, sorted."""
    return tuple(sorted({name for held, name in _table().recipes if package in (None, held)}))


def section_fields() -> Mapping[str, frozenset[str]]:
    """Names of the fields of every section; ``""``: of the configuration itself."""
    return _table().fields


def configuration(recipe: Recipe, line: int = 0) -> Thing:
    """A recipe's configuration as sections; no field counts as set by a script."""
    found = Thing(f"recipe {recipe.name}", line)
    model = Thing("provider", line)
    found.fields["model"] = model
    for name in ("hf", "provider"):
        if name in recipe.settings:
            model.fields[name] = recipe.settings[name]
    if "peft" in recipe.settings:
        found.fields["peft"] = Thing(str(recipe.settings["peft"]), line)
    if recipe.name.startswith("gpt3_175b"):
        model.fields["provider"] = "gpt3-175b"
    if "hf" in model.fields:
        model.fields |= sizes_of(str(model.fields["hf"]))
    for path, value in recipe.settings.items():
        section, _, name = path.partition(".")
        if name:
            held = found.fields.setdefault(section, Thing("", line))
            if isinstance(held, Thing):
                held.fields[name] = value
    if recipe.settings.get("comm_overlap") is not True:
        found.fields.pop("comm_overlap", None)
    return found


def model_of_hf(name: str) -> ModelSpec | None:
    """The built-in model with the shapes of a Hugging Face name; None where there is none."""
    known = {each.lower(): model for each, model in _CATALOGUE.items()}
    found = known.get(name.lower())
    if found is None:
        stem, _, last = name.lower().rpartition("-")
        ends = {f"{name.lower()}-{each}" for each in _SAME_SHAPES} | ({stem} if last in _SAME_SHAPES else set())
        found = next((known[each] for each in sorted(ends) if each in known), None)
    return None if found is None else builtin_model(found)


def sizes_of(name: str) -> dict[str, int]:
    """Sizes of a Hugging Face name's model that scripts reckon with; empty for one that is not known."""
    model = model_of_hf(name)
    if model is None:
        return {}
    attention = model.layer_kinds[-1].attention
    sizes = {
        "num_layers": model.num_layers,
        "hidden_size": model.hidden_size,
        "num_attention_heads": attention.num_heads,
        "num_query_groups": attention.num_kv_heads,
    }
    return sizes if attention.kind == "gqa" else {name: sizes[name] for name in ("num_layers", "hidden_size")}
