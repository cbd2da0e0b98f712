"""A plan for torchtitan 0.2.2, written and read back: ``titan.toml`` and the sizes in ``titan_model.py``.

TOML can only name a model, so the sizes are in a module that torchtitan imports (``experimental.custom_import``) and
that registers them under the name ``titan_plan``.
"""

from __future__ import annotations

import ast
import json
import tomllib
from pathlib import Path
from typing import Any

from planner.backends.rules.optimizer_recipe import (
    BETAS,
    CLIP_GRADIENT_NORM,
    EPSILON,
    LEARNING_RATE,
    WEIGHT_DECAY,
)
from planner.backends.torchtitan.family import family_of, model_sizes
from planner.backends.torchtitan.values import compiling, parallelism, training
from planner.backends.torchtitan.version import TOML_VERSION
from planner.errors import DocumentInvalid
from planner.plan.plan import Plan

CONFIG_FILE = "titan.toml"
MODEL_FILE = "titan_model.py"
FIXED = "# Below this line nothing depends on the plan."
_HINT = "emit the plan again"


def config(plan: Plan) -> dict[str, dict[str, Any]]:
    """Sections of the file."""
    policy = plan.chosen().recompute
    recompute = {"mode": policy} | ({"selective_ac_option": "op"} if policy == "selective" else {})
    return {
        "model": {"name": "titan_plan", "flavor": "plan"},
        "experimental": {"custom_import": "titan_model"},
        "training": {"dataset": "c4", "max_norm": CLIP_GRADIENT_NORM, **training(plan, TOML_VERSION)},
        "parallelism": parallelism(plan, TOML_VERSION),
        "compile": compiling(plan, TOML_VERSION),
        "activation_checkpoint": recompute,
        "optimizer": {
            "name": "AdamW",
            "lr": LEARNING_RATE,
            "beta1": BETAS[0],
            "beta2": BETAS[1],
            "eps": EPSILON,
            "weight_decay": WEIGHT_DECAY,
        },
    }


def config_text(plan: Plan) -> str:
    """The TOML file."""
    lines = [f"# The plan for torchtitan {TOML_VERSION}: python -m torchtitan.train --job.config_file titan.toml"]
    for name, values in config(plan).items():
        lines += ["", f"[{name}]", *(f"{key} = {_value(value)}" for key, value in values.items())]
    return "\n".join(lines) + "\n"


def model_text(plan: Plan) -> str:
    """The module with the sizes."""
    model = plan.problem.model
    sizes = model_sizes(model, plan.problem.workload.sequence_length, TOML_VERSION)
    rows = "".join(f"    {json.dumps(key)}: {value!r},\n" for key, value in sizes.items())
    head = f'"""The plan\'s model, registered with torchtitan {TOML_VERSION}."""\n\nFAMILY = "{family_of(model)}"\n'
    return f"{head}MODEL = {{\n{rows}}}\n\n{FIXED}\n{_fixed_text()}"


def read_config(text: str) -> dict[str, Any]:
    """The file's sections.  Raises DocumentInvalid."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentInvalid(f"not TOML: {error}", where=CONFIG_FILE, hint=_HINT) from error


def read_model(text: str) -> dict[str, Any]:
    """Sizes of the module, by the family's argument names.  Raises DocumentInvalid when it is not one of ours."""
    head, found, rest = text.partition(f"{FIXED}\n")
    if not found or rest != _fixed_text():
        raise DocumentInvalid("the code below the plan's sizes was edited", where=MODEL_FILE, hint=_HINT)
    try:
        _, family, sizes = ast.parse(head).body
        named = {
            each.targets[0].id: ast.literal_eval(each.value)  # type: ignore[attr-defined]
            for each in (family, sizes)
            if isinstance(each, ast.Assign)
        }
        return {"FAMILY": named["FAMILY"], **named["MODEL"]}
    except (SyntaxError, ValueError, TypeError, AttributeError, KeyError, RecursionError, MemoryError) as error:
        raise DocumentInvalid("not assignments of literals", where=MODEL_FILE, hint=_HINT) from error


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list) and any(isinstance(item, list) for item in value):
        return "[\n" + "".join(f"  {_value(item)},\n" for item in value) + "]"
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return json.dumps(value)


def _fixed_text() -> str:
    name = f"model_{TOML_VERSION.replace('.', '_')}.py.txt"
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
