"""What torchtitan 0.2.2's sources say of its models and of its job file, read without running them."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

FAMILIES = {"llama3": "llama3_args", "llama4": "llama4_args", "qwen3": "qwen3_args", "deepseek_v3": "deepseekv3_args"}
"""Model of ``torchtitan/models`` -> its table of flavors."""


def flavors(folder: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Family -> flavor -> arguments, those left out at their defaults; ``folder`` holds the package."""
    moe = _defaults(_tree(folder / "moe" / "moe.py"), "MoEArgs", {})
    return {family: _flavors(folder / family, table, moe) for family, table in FAMILIES.items()}


def _flavors(folder: Path, table: str, moe: dict[str, Any]) -> dict[str, dict[str, Any]]:
    arguments = _tree(folder / "model" / "args.py")
    name = next(node.name for node in arguments.body if isinstance(node, ast.ClassDef) and "ModelArgs" in node.name)
    defaults = _defaults(arguments, name, moe)
    for node in _tree(folder / "__init__.py").body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == table and isinstance(node.value, ast.Dict):
            return {
                ast.literal_eval(key): {**defaults, **_given(value, moe)}
                for key, value in zip(node.value.keys, node.value.values, strict=True)
                if key is not None
            }
    raise AssertionError(f"{folder} has no {table}")


def _given(call: ast.expr, moe: dict[str, Any]) -> dict[str, Any]:
    assert isinstance(call, ast.Call)
    return {str(each.arg): _value(each.value, moe) for each in call.keywords}


def _value(node: ast.expr, moe: dict[str, Any]) -> Any:
    if isinstance(node, ast.Call):
        called = ast.unparse(node)
        return {**moe, **_given(node, {})} if called.startswith("MoEArgs") else moe if "MoEArgs" in called else called
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return ast.literal_eval(node.left) * ast.literal_eval(node.right)
    return ast.literal_eval(node)


def _defaults(tree: ast.Module, name: str, moe: dict[str, Any]) -> dict[str, Any]:
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    fields = [node for node in body if isinstance(node, ast.AnnAssign) and node.value is not None]
    return {ast.unparse(node.target): _value(node.value, moe) for node in fields if node.value is not None}


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def job_keys(config: Path) -> set[str]:
    """``section.key`` of everything that ``config/job_config.py`` takes, of sections in sections too."""
    classes = {node.name: node for node in _tree(config).body if isinstance(node, ast.ClassDef)}

    def below(name: str) -> set[str]:
        found = set[str]()
        for node in classes[name].body:
            if isinstance(node, ast.AnnAssign):
                field, kind = ast.unparse(node.target), ast.unparse(node.annotation)
                found |= {f"{field}.{inner}" for inner in below(kind)} if kind in classes else {field}
        return found

    return below("JobConfig")
