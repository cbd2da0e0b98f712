"""The constants of the prediction, read from the sources, with the sentence below each."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

from docs.generate import page, table

ROOT = Path(__file__).parents[1]
MODULES = (
    "planner/predict/cost/efficiency.py",
    "planner/predict/cost/attention_time.py",
    "planner/predict/cost/operator_time.py",
    "planner/predict/cost/overlap.py",
    "planner/predict/collective.py",
    "planner/predict/cost/layer.py",
    "planner/predict/cost/data_parallel.py",
    "planner/predict/cost/hardware.py",
    "planner/predict/cost/measured.py",
    "planner/evidence/calibration/ladder.py",
    "planner/evidence/calibration/response.py",
    "planner/predict/coverage/coverage.py",
    "planner/predict/coverage/leaning.py",
    "planner/predict/coverage/compute.py",
    "profiles/prediction/curve_table.py",
    "profiles/prediction/build_curves.py",
    "profiles/prediction/kriging.py",
    "profiles/prediction/environment_choice.py",
    "profiles/prediction/build_profile.py",
    "profiles/prediction/profile.py",
    "profiles/prediction/collective_curves.py",
    "profiles/prediction/roofline.py",
    "planner/predict/memory/activations.py",
    "planner/predict/memory/states.py",
    "planner/predict/uncertainty.py",
)


def constants_page() -> str:
    """Name, value and meaning of every constant of the cost and memory models."""
    parts = [
        "Inputs of every prediction besides the catalogue's numbers ([devices](devices.md), [clusters](clusters.md))."
        " A [measured profile](../explanation/prediction-ladder.md) replaces most of the rates. Sources stand in the"
        " modules."
    ]
    for name in MODULES:
        rows = [(f"`{constant}`", value, words) for constant, value, words in constants_of(ROOT / name)]
        parts.append(f"## {name}\n\n{_first_line(ROOT / name)}\n\n" + table(("constant", "value", "meaning"), rows))
    return page("Constants of the cost and memory models", *parts, *_architectures())


def _architectures() -> list[str]:
    """What the catalogue says of architectures, with the source of each quantity."""
    from profiles.catalogue.architectures import FILE, FusedAttention, architectures

    parts = [f"## {FILE.relative_to(ROOT)}"]
    for name, known in architectures():
        if name == "schema_version":
            continue
        if isinstance(known, FusedAttention):
            rows = [
                (f"{kernel}, {architecture}", *(f"{value:,.6g}" for _, value in rates))
                for kernel, by_architecture in known.kernels.items()
                for architecture, rates in (*by_architecture.items(), ("other", known.other))
            ]
            shown = table(("kernel", *(f">{column}" for column in type(known.other).model_fields)), rows)
        else:
            values = known.values | ({} if known.other is None else {"other": known.other})
            shown = ", ".join(f"{architecture} {value:,.6g}" for architecture, value in values.items())
        said = known.provenance
        source = f"Confidence {said.confidence}: {said.source}{'; ' if said.note else ''}{said.note}."
        parts.append(f"### `{name}`\n\n{shown}\n\n{source}")
    return parts


def constants_of(path: Path) -> Iterator[tuple[str, str, str]]:
    """Upper-case names that hold numbers (or tables of them), their values, and the string that follows each."""
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    body = ast.parse(path.read_text(encoding="utf-8")).body
    for statement, after in zip(body, [*body[1:], None], strict=True):
        words = ""
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            words = after.value.value
        for name in _names(statement):
            value = getattr(module, name)
            if name.isupper() and name[0] != "_" and isinstance(value, int | float | dict):
                yield name, _shown(value), words


def _names(statement: ast.stmt) -> list[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    flat = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return [each.id for each in flat if isinstance(each, ast.Name)]


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(each)}" for key, each in value.items())
    return f"{value:,.6g}" if isinstance(value, int | float) else str(value)


def _first_line(path: Path) -> str:
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n")[0]
