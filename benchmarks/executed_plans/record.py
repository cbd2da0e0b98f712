"""The record of executed plans: one document a back-end, one line a plan, and what no CPU can run with who shows it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "results" / "executed"
CITED = ROOT / "tables" / "executed-elsewhere.json"
"""Back-end -> values that no CPU run exercises, each with the line of the back-end's own code or test that does."""


def record_path(backend: str) -> Path:
    """The document of one back-end."""
    return FOLDER / f"{backend}.json"


def read_record(backend: str) -> dict[str, Any]:
    """The document; one without plans where there is none."""
    path = record_path(backend)
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"backend": backend, "plans": []}


def write_record(record: Mapping[str, Any]) -> None:
    """Written whole, each plan on a line of its own."""
    head = {name: value for name, value in record.items() if name != "plans"}
    plans = ",\n".join(" " + json.dumps(plan, sort_keys=True) for plan in record["plans"])
    text = json.dumps(head, indent=1)[:-2] + f',\n "plans": [\n{plans}\n ]\n}}\n'
    FOLDER.mkdir(parents=True, exist_ok=True)
    record_path(record["backend"]).write_text(text, encoding="utf-8")


def cited(backend: str) -> tuple[dict[str, Any], ...]:
    """``{field, values, why, source}``: what was not executed here, and who shows that it runs.

    ``replaced``: a CPU run has something else in its place, so that a plan which has the value says nothing about it.
    """
    return tuple(json.loads(CITED.read_text(encoding="utf-8")).get(backend, ()))


def recorded_backends() -> tuple[str, ...]:
    """Back-ends with a document."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


def ran(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Its plans that trained."""
    return [plan for plan in record["plans"] if plan["verdict"] == "ran"]


def executed_values(plans: Sequence[Mapping[str, Any]]) -> dict[str, set[str]]:
    """Field -> the values that some plan had when it trained."""
    found: dict[str, set[str]] = {}
    for plan in plans:
        for field, value in plan["values"].items():
            found.setdefault(field, set()).add(value)
    return found


def exercised(backend: str, values: Mapping[str, str]) -> dict[str, str]:
    """``values`` without those that the run on a CPU replaces, and which it therefore says nothing about."""
    replaced = {(each["field"], value) for each in cited(backend) if each.get("replaced") for value in each["values"]}
    return {field: value for field, value in values.items() if (field, value) not in replaced}
