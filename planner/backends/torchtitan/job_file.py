"""Job files of torchtitan's users as sections of settings: 0.2.2's TOML, functions of 0.3.0's config modules.

``--section.key VALUE`` behind them, as on torchtitan's own command line, wins.  Nothing is executed: of a module the
function that ``--config`` names is followed as far as it is data; what is not is ``OPEN`` and refused where it is used.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.errors import DocumentInvalid

Sections = dict[str, Any]
RECOMPUTE = {"FullAC": "full", "SelectiveAC": "selective", "MemoryBudgetAC": "memory_budget"}
_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Open:
    """A value that the text does not decide."""

    text: str
    line: int


@dataclass(slots=True)
class Called:
    """A call of some name, such as ``TrainingConfig(seq_len=8192)``: never made, only its arguments read."""

    name: str
    arguments: list[Any] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    line: int = 0


def toml_sections(text: str, where: str) -> Sections:
    """Sections of a job file of 0.2.2.  Raises DocumentInvalid."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise DocumentInvalid(f"not TOML: {error}", where=where, hint="give a job file of torchtitan") from error


def module_sections(text: str, config: str, where: str) -> Sections:
    """Sections of the job that a function of a config module gives.  Raises DocumentInvalid."""
    try:
        functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise DocumentInvalid(f"not Python: {error}", where=where) from error
    if config not in functions:
        names = ", ".join(sorted(functions)[:12])
        raise DocumentInvalid(f"no function {config!r} in it", where=where, hint=f"name one with -- --config: {names}")
    found = _returned(functions, config, where, 0)
    return {name: _section(name, value) for name, value in found.settings.items() if name != "model_spec"} | {
        "model": _model(found.settings.get("model_spec"))
    }


def _section(name: str, value: Any) -> Any:
    if name == "activation_checkpoint":
        kind = value.name.split(".")[0] if isinstance(value, Called) else None
        settings = value.settings if isinstance(value, Called) else {}
        return {"mode": RECOMPUTE.get(kind or "", "none" if value is None else value), **settings}
    return value.settings if isinstance(value, Called) else value


def _model(spec: Any) -> dict[str, Any]:
    """The flavor that ``model_registry`` is asked for, and the converters of its layers."""
    if not isinstance(spec, Called) or not spec.arguments:
        return {"flavor": spec.settings.get("flavor") if isinstance(spec, Called) else None}
    converters = spec.settings.get("converters") or []
    names = [each.name.split(".")[0] if isinstance(each, Called) else each for each in converters]
    return {"flavor": spec.arguments[0], "converters": names}


def _returned(functions: Mapping[str, ast.FunctionDef], name: str, where: str, depth: int) -> Called:
    """What a function gives, its statements followed in order."""
    if depth > _DEPTH:
        raise DocumentInvalid(f"{name} calls itself", where=where)
    known: dict[str, Any] = {}
    for node in functions[name].body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            value = _value(node.value, known, functions, (where, depth))
            if not _assigned(node.targets[0], value, known):
                raise _unread(name, node, where)
        elif isinstance(node, ast.Return) and node.value is not None:
            value = _value(node.value, known, functions, (where, depth))
            if isinstance(value, Called):
                return value
            raise _unread(name, node, where)
        elif not isinstance(node, (ast.Expr, ast.Import, ast.ImportFrom, ast.Assert, ast.FunctionDef)):
            raise _unread(name, node, where)
    raise DocumentInvalid(f"{name} gives no configuration", where=where)


def _unread(name: str, node: ast.stmt, where: str) -> DocumentInvalid:
    return DocumentInvalid(
        f"line {node.lineno} of {name} is more than data: {ast.unparse(node)[:60]}",
        where=where,
        hint="write a function that gives Trainer.Config(...) with plain values",
    )


def _assigned(target: ast.expr, value: Any, known: dict[str, Any]) -> bool:
    """Whether ``name = value`` or ``name.section.key = value`` could be kept."""
    if isinstance(target, ast.Name):
        known[target.id] = value
        return True
    path = ast.unparse(target).split(".")
    below = known.get(path[0])
    for part in path[1:-1]:
        below = below.settings.setdefault(part, Called(part)) if isinstance(below, Called) else None
    if not isinstance(target, ast.Attribute) or not isinstance(below, Called):
        return False
    below.settings[path[-1]] = value
    return True


def _value(
    node: ast.expr, known: Mapping[str, Any], functions: Mapping[str, ast.FunctionDef], place: tuple[str, int]
) -> Any:
    """Literals, lists, products and sums of numbers, names assigned above, calls; anything else is open."""

    def inner(part: ast.expr) -> Any:
        return _value(part, known, functions, place)

    if isinstance(node, ast.Name) and node.id in known:
        return known[node.id]
    if isinstance(node, ast.List):
        return [inner(each) for each in node.elts]
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Add)):
        left, right = inner(node.left), inner(node.right)
        if isinstance(left, int) and isinstance(right, int):
            return left * right if isinstance(node.op, ast.Mult) else left + right
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        if name in functions and not node.args and not node.keywords:
            return _returned(functions, name, place[0], place[1] + 1)
        settings = {each.arg: inner(each.value) for each in node.keywords if each.arg is not None}
        return Called(name, [inner(each) for each in node.args], settings, node.lineno)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return Open(ast.unparse(node)[:60], node.lineno)
