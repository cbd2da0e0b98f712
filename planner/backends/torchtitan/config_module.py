"""``titan_plan.py``: a plan written for torchtitan 0.3.0, and read without running it.

The module begins with assignments of literals; everything below ``FIXED`` is the same for all plans of a family.
Reading parses the literals (``ast``) and compares the rest with what we write, so that the literals mean what they
say.  Nothing of the file is ever executed here.
"""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any, get_args

from planner.backends.rules.optimizer_recipe import filled
from planner.backends.torchtitan.family import FamilyName, family_of, model_sizes
from planner.backends.torchtitan.values import compiling, float8_recipe, parallelism, training
from planner.backends.torchtitan.version import TORCHTITAN_VERSION
from planner.errors import DocumentInvalid
from planner.plan.plan import Plan

MODULE_FILE = "titan_plan.py"
FIXED = "# Below this line nothing depends on the plan."
NAMES = ("FAMILY", "MODEL", "PARALLELISM", "TRAINING", "COMPILE", "ACTIVATION_CHECKPOINT", "FLOAT8_RECIPE")
_HINT = "emit the plan again"
_SHORT = 100
_DOCSTRING = (
    f'"""The plan for torchtitan {TORCHTITAN_VERSION}: python -m torchtitan.train --module titan_plan --config plan."""'
)


def literals(plan: Plan) -> dict[str, Any]:
    """Everything that the module assigns, by ``NAMES``."""
    model, workload = plan.problem.model, plan.problem.workload
    values = (
        family_of(model),
        model_sizes(model, workload.sequence_length, TORCHTITAN_VERSION),
        parallelism(plan, TORCHTITAN_VERSION),
        training(plan, TORCHTITAN_VERSION),
        compiling(plan, TORCHTITAN_VERSION),
        plan.chosen().recompute,
        float8_recipe(plan),
    )
    return dict(zip(NAMES, values, strict=True))


def module_text(plan: Plan) -> str:
    """The file."""
    assigned = literals(plan)
    lines = [_DOCSTRING, "", *(f"{name} = {_literal(value)}" for name, value in assigned.items()), "", FIXED]
    return "\n".join(lines) + "\n" + fixed_text(assigned["FAMILY"])


def fixed_text(family: FamilyName) -> str:
    """What follows ``FIXED``."""
    imports, model, trainer = (_data(name) for name in ("imports", family, "plan"))
    return imports + model + trainer


def read_module(text: str) -> dict[str, Any]:
    """The literals of a module.  Raises DocumentInvalid when it is not one of ours, or computes anything else."""
    head, found, rest = text.partition(f"{FIXED}\n")
    if not found:
        raise DocumentInvalid(f"the line {FIXED!r} is missing", where=MODULE_FILE, hint=_HINT)
    assigned: dict[str, Any] = {}
    try:
        statements = ast.parse(head).body
        for statement in statements[1:]:
            name = _assigned_name(statement)
            assigned[name] = ast.literal_eval(statement.value)  # type: ignore[attr-defined]
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        raise DocumentInvalid(f"not assignments of literals: {error}", where=MODULE_FILE, hint=_HINT) from error
    if tuple(assigned) != NAMES:
        raise DocumentInvalid(f"assigns {', '.join(assigned)}, not {', '.join(NAMES)}", where=MODULE_FILE, hint=_HINT)
    if assigned["FAMILY"] not in get_args(FamilyName):
        raise DocumentInvalid(f"no family {assigned['FAMILY']!r}", where=f"{MODULE_FILE}: FAMILY", hint=_HINT)
    if rest != fixed_text(assigned["FAMILY"]):
        raise DocumentInvalid("the code below the plan's values was edited", where=MODULE_FILE, hint=_HINT)
    return assigned


def _assigned_name(statement: ast.stmt) -> str:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        raise ValueError(f"line {statement.lineno}")
    target = statement.targets[0]
    if not isinstance(target, ast.Name):
        raise ValueError(f"line {statement.lineno}")
    return target.id


def _literal(value: Any) -> str:
    """Python source of a literal, a mapping and a long list over several lines."""
    if isinstance(value, dict):
        return "{\n" + "".join(f"    {_word(key)}: {_item(item)},\n" for key, item in value.items()) + "}"
    return _word(value)


def _item(value: Any) -> str:
    if isinstance(value, list) and len(_word(value)) > _SHORT:
        return "[\n" + "".join(f"        {_word(item)},\n" for item in value) + "    ]"
    return _word(value)


def _word(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_word, value))}]"
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _data(name: str) -> str:
    path = Path(__file__).parent / f"{name}_{TORCHTITAN_VERSION.replace('.', '_')}.py.txt"
    return filled(path.read_text(encoding="utf-8"))
