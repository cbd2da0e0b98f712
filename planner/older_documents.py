"""How are documents of earlier versions read?  Upgraded, never refused.

Version 1 of a question had two words for the software that runs a plan: ``constraints.target`` (whose rules) and
``framework`` (whose kernels, launches and memory).  Version 2 has one, ``constraints.backends``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BACKEND_OF_FRAMEWORK = {
    "tuned": "unrestricted",
    "megatron-2021": "megatron==2.5",
}
"""Names of version 1 that are spelled otherwise today; the others name a back-end."""


def backend_of(target: str, framework: str) -> str:
    """The back-end of today for a target and a framework of version 1.

    A target that is the framework's own software is that; else a target decides, for only its rules were kept; without
    one the framework's software, and the free space where that was the neutral one.
    """
    named = BACKEND_OF_FRAMEWORK.get(framework, framework)
    if target in ("any", named.partition("==")[0]):
        return named
    return target


def constraints_of_today(data: Any) -> Any:
    """Constraints with ``backends`` in the place of ``target``."""
    if not isinstance(data, Mapping) or data.get("schema_version", 2) != 1 or "backends" in data:
        return data
    upgraded = {name: value for name, value in data.items() if name != "target"}
    return {**upgraded, "schema_version": 2, "backends": [backend_of(str(data.get("target", "any")), "tuned")]}


def problem_of_today(data: Any) -> Any:
    """A question with its target and framework as one back-end."""
    if not isinstance(data, Mapping) or data.get("schema_version", 2) != 1:
        return data
    upgraded = {name: value for name, value in data.items() if name != "framework"}
    upgraded["schema_version"] = 2
    framework, constraints = str(data.get("framework", "tuned")), data.get("constraints", {})
    if isinstance(constraints, Mapping) and "backends" not in constraints:
        kept = {name: value for name, value in constraints.items() if name != "target"}
        name = backend_of(str(constraints.get("target", "any")), framework)
        upgraded["constraints"] = {**kept, "schema_version": 2, "backends": [name]}
    return upgraded


def plan_of_today(data: Any) -> Any:
    """A plan that names its back-end; its numbers stay as they were."""
    if not isinstance(data, Mapping) or data.get("schema_version", 2) != 1:
        return data
    upgraded = {**data, "schema_version": 2}
    problem = problem_of_today(data.get("problem"))
    if isinstance(problem, Mapping):
        upgraded["problem"] = problem
        named = problem.get("constraints", {}).get("backends", ["unrestricted"])[0]
        upgraded["backend"], _, upgraded["release"] = str(named).partition("==")
    return upgraded
