"""Documents of earlier versions: upgraded, never refused.

Version 1 of a question had two words for the software that runs a plan: ``constraints.target`` (whose rules) and
``framework`` (whose kernels, launches and memory).  Version 2 has one, ``constraints.backends``.

Until November 2026 a workload could say images or clips of a model without a tower for them.  They had no effect, so
they are left out.

Stored documents say their version.  What somebody wrote by hand may not: there the old words tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.question.work_kind import ITEMS

BACKEND_OF_FRAMEWORK = {
    "tuned": "unrestricted",
    "megatron-2021": "megatron==2.5",
}
"""Frameworks of version 1 that are spelled otherwise today; the others name a back-end."""


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
    if not isinstance(data, Mapping) or "backends" in data or not _is_first(data, "target"):
        return data
    return _constraints(data, "tuned")


def problem_of_today(data: Any) -> Any:
    """A question with its target and framework as one back-end, and no items that no tower reads."""
    if not isinstance(data, Mapping):
        return data
    data = _without_unread_items(data)
    constraints = data.get("constraints", {})
    if not isinstance(constraints, Mapping) or "backends" in constraints:
        return data
    if not _is_first(data, "framework") and not _is_first(constraints, "target"):
        return data
    kept = {name: value for name, value in data.items() if name != "framework"}
    named = _constraints(constraints, str(data.get("framework", "tuned")))
    return {**kept, "schema_version": 2, "constraints": named}


def plan_of_today(data: Any) -> Any:
    """A plan that names its back-end; its numbers stay as they were.

    Until November 2026 plans had two step times: that of a closed form, which they were proved and shown by and keep,
    and ``simulated_step_time_s``, which is left out; and estimates called their own step time the lower bound.
    """
    if isinstance(data, Mapping) and "simulated_step_time_s" in data:
        data = {name: value for name, value in data.items() if name != "simulated_step_time_s"}
    if isinstance(data, Mapping) and _is_estimate(data) and data.get("lower_bound_s") is not None:
        data = {**data, "lower_bound_s": None, "gap": None}
    if not isinstance(data, Mapping):
        return data
    if not _is_first(data):
        asked = data.get("problem")
        read = _without_unread_items(asked) if isinstance(asked, Mapping) else asked
        return data if read is asked else {**data, "problem": read}
    problem = problem_of_today(data.get("problem"))
    constraints = problem.get("constraints") if isinstance(problem, Mapping) else None
    if not isinstance(constraints, Mapping) or "backends" not in constraints:
        return data
    name, _, release = str(constraints["backends"][0]).partition("==")
    return {**data, "schema_version": 2, "problem": problem, "backend": name, "release": release}


def has_older_words(body: str) -> bool:
    """Whether the canonical JSON of a plan of today's version may be one that ``plan_of_today`` upgrades."""
    items = ('"vision":null' in body and '"images_per_sample":0' not in body) or '"audio_clips_per_sample":' in body
    return items or '"simulated_step_time_s":' in body or '"bounded":0,' in body


def _without_unread_items(problem: Mapping[str, Any]) -> Mapping[str, Any]:
    """The question itself, or one whose workload says no images or clips that the model has no tower for.

    Only text is upgraded: a question that is made of documents says what its caller means, and is refused.
    """
    model, workload = problem.get("model"), problem.get("workload")
    if not isinstance(model, Mapping) or not isinstance(workload, Mapping):
        return problem
    further = model.get("further_towers") or ()
    towers = {tower.get("modality") for tower in further if isinstance(tower, Mapping)}
    if model.get("vision") is not None:
        towers.add("vision")
    unread = [field for modality, field in ITEMS.items() if workload.get(field) and modality not in towers]
    return {**problem, "workload": {**workload, **dict.fromkeys(unread, 0)}} if unread else problem


def _is_estimate(plan: Mapping[str, Any]) -> bool:
    """Whether nobody searched: a given strategy was estimated."""
    search = plan.get("search")
    return isinstance(search, Mapping) and search.get("bounded") == 0


def _is_first(data: Mapping[str, Any], *old_words: str) -> bool:
    """Whether a document is of version 1: it says so, or says nothing and uses a word that only version 1 had."""
    version = data.get("schema_version")
    return version == 1 if version is not None else any(word in data for word in old_words)


def _constraints(data: Mapping[str, Any], framework: str) -> dict[str, Any]:
    kept = {name: value for name, value in data.items() if name != "target"}
    named = backend_of(str(data.get("target", "any")), framework)
    return {**kept, "schema_version": 2, "backends": [named]}
