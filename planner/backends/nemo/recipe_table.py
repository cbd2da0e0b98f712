"""The recipes of NeMo 2.4.0: what each sets, as ``python -m tests.contract.nemo_recipes`` found it.

Paths are those of a recipe object (``trainer.strategy.tensor_model_parallel_size``); ``@`` is the class of a section,
``0`` its first argument.  Classes of models have their fields with what they inherit (nemo/collections/llm/gpt/model).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from planner.errors import DocumentInvalid
from planner.model.python_values import Open, Ref, Thing

FUNCTIONS = ("pretrain_recipe", "finetune_recipe")
_HARMLESS = frozenset({"dir", "name", "fn", "log", "max_steps"})
_SWITCHES = ("peft_scheme", "performance_mode", "packed_sequence")
_COMPUTED = "?"


@dataclass(frozen=True, slots=True)
class _Table:
    recipes: Mapping[tuple[str, str], Mapping[str, Any]]
    common: Mapping[str, Any]
    configs: Mapping[str, Mapping[str, Any]]


@cache
def _table() -> _Table:
    text = Path(__file__).with_name("recipes_2_4_0.jsonl").read_text(encoding="utf-8")
    head, *rows = map(json.loads, text.splitlines())
    recipes = {(name, row["function"]): row for row in rows for name in (row["factory"], row["module"])}
    return _Table(recipes, head["common"], head["configs"])


def recipe_names() -> tuple[str, ...]:
    """Names of all modules with recipes, sorted."""
    return tuple(sorted({row["module"] for row in _table().recipes.values()}))


def config_fields(name: str) -> Mapping[str, Any] | None:
    """The fields of a model's class; None for a class that is not one of NeMo's decoders."""
    return _table().configs.get(name)


def recipe(module: str, function: str, given: Mapping[str, Any], where: str, line: int = 0) -> Thing:
    """A recipe's configuration for the arguments that its function is given.

    Raises DocumentInvalid for a name that the release has not, for arguments that the recipe refuses, and for those
    that it computes with.
    """
    table = _table()
    row = table.recipes.get((module, function))
    if row is None:
        stem = re.split(r"[_\d]", module)[0]
        close = [name for name in recipe_names() if name.startswith(stem)]
        hint = f"its recipes of {stem}: {', '.join(close[:8])}" if close else "name one of its recipes"
        raise DocumentInvalid(f"NeMo 2.4.0 has no recipe {module}.{function}", where=where, hint=hint)
    said = {**table.common, **row["says"], **_variant(row, given, where)}
    found = Thing(f"recipe {module}", line, [], {"trainer": Thing("Trainer", line, [], {"callbacks": []})})
    for path, value in said.items():
        if value is not None:
            put(found, path, value, line)
    for name, value in given.items():
        paths = row["parameters"].get(name, ())
        if _COMPUTED in paths:
            raise DocumentInvalid(
                f"{module}.{function} computes with {name}", where=where, hint="set the field of the recipe itself"
            )
        for path in () if value is None else paths:
            put(found, path, value, line, said=True)
        if not paths and name not in _HARMLESS and name not in _SWITCHES:
            found.fields.setdefault("arguments", Thing("", line)).set(name, value, line)
    return found


def _variant(row: Mapping[str, Any], given: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """What the switches of a recipe change."""
    scheme = given.get("peft_scheme", "lora")
    words = {name: given.get(name) for name in _SWITCHES[1:]}
    for name, value in (("peft_scheme", scheme), *words.items()):
        if isinstance(value, (Open, Ref, Thing)):
            text = value.text if isinstance(value, Open) else value.name
            raise DocumentInvalid(
                f"{name} is {text}, which the text does not decide",
                where=where,
                hint="say the variable or the argument",
            )
    scheme = "none" if scheme is None else str(scheme).lower()
    keys = [] if scheme == "lora" else [f"peft_scheme={scheme}"]
    keys += [f"{name}=True" for name, value in words.items() if value]
    variants, key = row["variants"], ",".join(keys)
    dora = "peft_scheme=dora" in keys and key not in variants
    if dora:
        key = ",".join(each for each in keys if each != "peft_scheme=dora")
    found = variants.get(key) if key else {}
    if found is None:
        named = key or "peft_scheme=dora"
        hint = f"it has {'; '.join(variants) or 'none'}"
        raise DocumentInvalid(f"recipe {row['module']} has no variant {named}", where=where, hint=hint)
    if "refused" in found:
        raise DocumentInvalid(f"recipe {row['module']} refuses {key}: {found['refused']}", where=where)
    return {**found, "peft.@": "DoRA"} if dora else dict(found)


def put(config: Thing, path: str, value: Any, line: int, *, said: bool = False) -> None:
    """Set one path of a configuration; callbacks are a list of things."""
    below = config
    *sections, name = path.split(".")
    place = 0
    while place < len(sections):
        section = sections[place]
        if section == "callbacks":
            below = _callback(below, sections[place + 1] if place + 1 < len(sections) else name, line)
            place += 2
            continue
        held = below.fields.get(section)
        if not isinstance(held, Thing):
            held = below.fields[section] = Thing("", line, replaces=held)
        below, place = held, place + 1
    if name == "@":
        below.name = str(value)
    elif name == "0":
        below.positional[:1] = [value]
    elif said:
        below.set(name, value, line)
    else:
        below.fields[name] = list(value) if isinstance(value, list) else value


def _callback(trainer: Thing, name: str, line: int) -> Thing:
    held = trainer.fields.setdefault("callbacks", [])
    for each in held:
        if isinstance(each, Thing) and each.name.rpartition(".")[2] == name:
            return each
    held.append(Thing(name, line))
    return held[-1]  # type: ignore[no-any-return]
