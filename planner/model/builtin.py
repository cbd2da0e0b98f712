"""The models that ship with Meshwright.

Each is one data file in ``catalogue/``: a ``source``, and one of ``hf_config`` (numbers of a Hugging Face config),
``diffusers_config`` (of a diffusers class) or ``model`` (keys of the model YAML).
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from planner.model.diffusers_config import model_from_diffusers_config
from planner.model.hf_config import model_from_hf_config
from planner.model.model_yaml import model_from_description
from planner.model.spec import ModelSpec
from profiles.errors import NotFound
from profiles.safe_json import load_json_text
from profiles.spelling import typing_slip


@cache
def builtin_models() -> tuple[str, ...]:
    """Names of the built-in models, sorted."""
    folder = files("planner.model") / "catalogue"
    return tuple(sorted(item.name.removesuffix(".json") for item in folder.iterdir() if item.name.endswith(".json")))


def builtin_document(name: str) -> dict[str, Any]:
    """The data file of a built-in model.  Raises ``NotFound``."""
    key = name.strip().lower()
    if key not in builtin_models():
        match = typing_slip(key, builtin_models())
        hint = f"did you mean '{match}'?" if match else f"built-in models: {', '.join(builtin_models())}"
        raise NotFound(f"there is no built-in model '{name}'", where="--model", hint=hint)
    path = files("planner.model") / "catalogue" / f"{key}.json"
    data: dict[str, Any] = load_json_text(path.read_text(encoding="utf-8"), f"catalogue/{key}.json")
    return data


def builtin_model(name: str) -> ModelSpec:
    """A built-in model by its name (case does not matter).  Raises ``NotFound`` with the name meant, or all."""
    key = name.strip().lower()
    data = builtin_document(key)
    where = f"catalogue/{key}.json"
    if "hf_config" in data:
        return model_from_hf_config(data["hf_config"], key, where)
    if "diffusers_config" in data:
        return model_from_diffusers_config(data["diffusers_config"], key, where)
    return model_from_description(data["model"], key, where)


def builtin_source(name: str) -> str:
    """Where the numbers of a built-in model come from."""
    return str(builtin_document(name)["source"])
