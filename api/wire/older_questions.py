"""Requests of earlier releases are upgraded, never refused.

They had two words for the software that runs a plan, ``constraints.target`` and ``framework``, where there is one
today, ``constraints.backends``; and an emission's ``target`` with its ``version``, where there is ``backend``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.question.older_documents import problem_of_today

OLD = 1
"""``schema_version`` of documents with the old words."""


def question_of_today(data: Any) -> Any:
    """A body that has an old word, or a part of version 1, with ``constraints.backends`` in the place of both words.

    A body with words of both kinds stays as it is, and the old one is found to be no key.
    """
    if not isinstance(data, Mapping):
        return data
    constraints = data.get("constraints", {})
    if not isinstance(constraints, Mapping) or "backends" in constraints:
        return data
    versions = (data.get("schema_version"), constraints.get("schema_version"))
    if "framework" not in data and "target" not in constraints and OLD not in versions:
        return data
    upgraded: dict[str, Any] = problem_of_today({**data, "schema_version": OLD})
    if "schema_version" not in data:
        # Questions have none of their own; sweeps have.
        del upgraded["schema_version"]
    return upgraded


def emission_of_today(data: Any) -> Any:
    """Launch files of a ``target``, perhaps in a ``version``, as those of a ``backend``."""
    if not isinstance(data, Mapping) or "target" not in data or "backend" in data:
        return data
    upgraded = {name: value for name, value in data.items() if name not in {"target", "version"}}
    return {**upgraded, "backend": spelled(data["target"], data.get("version"))}


def spelled(target: Any, version: Any) -> Any:
    """``NAME==RELEASE`` of the two words; what is no text is left for the check of the document."""
    return f"{target}=={version}" if isinstance(target, str) and version else target
