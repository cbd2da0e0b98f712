"""megatron-bridge: checks the overrides' field names, and that ``ConfigContainer.validate`` takes them.

The overlay holds the wheels of megatron-bridge and of megatron-core, without any dependency (Transformer Engine, CUDA,
Hydra): the worker's docstring says what is proved without them and what is not.  Bridge asks for Python 3.12; its
config classes run on 3.11.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.validator import Request, Validator
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, read_world_size
from planner.backends.megatron.version import MEGATRON_CORE_VERSION
from planner.backends.megatron_bridge.adapters import CLASSES, recipe_adapters
from planner.backends.megatron_bridge.overrides import ENVIRONMENT, OVERRIDES_FILE
from planner.backends.megatron_bridge.version import BRIDGE_VERSION
from planner.backends.megatron_bridge.write import RECIPE_FILE
from planner.errors import DocumentInvalid


def request(folder: EmittedFolder) -> Request:
    """Every line of the overrides as it stands, typed as Hydra would, the recipe's fusions, and the ranks started."""
    said: dict[str, Any] = {}
    environment: dict[str, str] = {}
    for line in folder.files.get(OVERRIDES_FILE, "").splitlines():
        path, separator, value = line.strip().partition("=")
        if not separator or path.startswith("#"):
            continue
        if path.startswith(ENVIRONMENT):
            environment[path.removeprefix(ENVIRONMENT)] = value.strip("'\"")
        else:
            said[path] = typed(value)
    return {
        **_adapters(folder.files.get(RECIPE_FILE, "")),
        "overrides": said,
        "fusions": _fusions(folder.files.get(RECIPE_FILE, "")),
        "optimizer": _optimizer(folder.files.get(RECIPE_FILE, "")),
        "environment": environment,
        "world_size": _world_size(folder),
    }


def _adapters(recipe: str) -> Request:
    """Class, its module and its fields, where the recipe trains adapters; not understood ones are refused there."""
    try:
        found = recipe_adapters(recipe, RECIPE_FILE)
    except DocumentInvalid as error:
        return {"adapters": {"error": f"{RECIPE_FILE}: {error.what}"}}
    if found is None:
        return {}
    name, fields = found
    return {"adapters": {"module": CLASSES.get(name, ""), "class": name, "fields": fields}}


def _fusions(recipe: str) -> dict[str, Any] | None:
    """What the recipe assigns to FUSIONS, read without running it; None where that is no mapping of literals."""
    try:
        for statement in ast.parse(recipe).body:
            match statement:
                case ast.Assign(targets=[ast.Name("FUSIONS")], value=value):
                    found = ast.literal_eval(value)
                    return found if isinstance(found, dict) else None
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    return None


def _optimizer(recipe: str) -> dict[str, Any]:
    """The literals that the recipe gives ``OptimizerConfig``; empty where it has no such call."""
    try:
        calls = [node for node in ast.walk(ast.parse(recipe)) if isinstance(node, ast.Call)]
        found = [each for each in calls if isinstance(each.func, ast.Name) and each.func.id == "OptimizerConfig"]
        return {word.arg: ast.literal_eval(word.value) for word in found[0].keywords if word.arg} if found else {}
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return {}


def _world_size(folder: EmittedFolder) -> int:
    try:
        return read_world_size(folder.files.get(LAUNCH_SCRIPT, ""))
    except DocumentInvalid:
        return folder.plan().chosen().world_size


def typed(text: str) -> Any:
    """A number, a truth value, a list of such, or text."""
    if text.startswith("[") and text.endswith("]"):
        return [typed(each) for each in text[1:-1].split(",") if each]
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip("'\"")


VALIDATOR = Validator(
    name="megatron-bridge",
    default_version=BRIDGE_VERSION,
    worker=Path(__file__).with_name("validator_worker.py"),
    applies=lambda folder: folder.backend == "megatron-bridge",
    request=request,
    packages=lambda version: (f"megatron-bridge=={version}", f"megatron-core=={MEGATRON_CORE_VERSION}"),
    base_modules=("torch", "numpy", "transformers", "typing_extensions"),
)
