"""What a Python caller says, as documents: the words of ``import meshwright``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import DocumentInvalid
from planner.question.problem import Constraints, Objective, Problem, Workload
from planner.strategy.fields import PINNABLE
from planner.strategy.spelling import did_you_mean
from planner.strategy.text import checked_fields, parse_assignments, parse_forbids
from profiles.validation import read_document

if TYPE_CHECKING:
    from planner.answers.replan.replan import Replan
    from planner.plan.plan import Plan

SHORT = {
    "pin": "pins",
    "forbid": "forbids",
    "backend": "backends",
    "objective": "minimize",
    "price": "price_per_device_hour",
    "memory_margin": "memory_margin_fraction",
}
"""Words of the command line -> fields of the documents."""
_LISTS = ("forbids", "backends")
_OTHERS = ("profile", "calibration")


def said_problem(model: Any, cluster: Any, devices: int | None, said: Mapping[str, Any]) -> Problem:
    """The question that some words mean; a launch script as the model also says workload and devices.

    Raises DocumentInvalid, NotFound, Conflict.
    """
    from planner.operations.calibration_choice import chosen_calibration
    from planner.operations.launch_files import megatron_script
    from planner.operations.profile_choice import chosen_profile
    from planner.operations.question import asked_problem, cluster_of, model_of

    if cluster is None:
        raise DocumentInvalid("on which devices?", where="cluster", hint="give a name, a file or a document")
    script = megatron_script(str(model)) if isinstance(model, (str, Path)) else None
    parts = _parts({**(script.workload if script else {}), **said})
    spec = script.model if script else model_of(model)
    where = cluster_of(cluster, devices or (script.num_devices if script else None))
    text = said.get("calibration")
    return asked_problem(
        spec,
        where,
        read_document(Workload, parts["workload"], "workload"),
        _constraints(parts["constraints"]),
        read_document(Objective, {"prefer": "recommended", **parts["objective"]}, "objective"),
        chosen_profile(str(said.get("profile", "auto")), where.pools[0].device),
        None if text is None else chosen_calibration(str(text)),
    )


def _parts(said: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Which word belongs to which document.  Raises DocumentInvalid for one that belongs to none."""
    fields = {
        "workload": set(Workload.model_fields),
        "constraints": set(Constraints.model_fields),
        "objective": set(Objective.model_fields),
    }
    parts: dict[str, dict[str, Any]] = {name: {} for name in fields}
    for word, value in said.items():
        name = SHORT.get(word, word)
        home = next((part for part, known in fields.items() if name in known and name != "schema_version"), None)
        if home is not None:
            parts[home][name] = _list(value) if name in _LISTS else value
        elif word not in _OTHERS:
            known = {*SHORT, *_OTHERS, *set.union(*fields.values())} - {"schema_version"}
            raise DocumentInvalid(
                f"a question has no part {word!r}", where=word, hint=did_you_mean(word, sorted(known))
            )
    return parts


def _constraints(said: dict[str, Any]) -> Constraints:
    if "pins" in said:
        pins = said["pins"]
        assigned = parse_assignments([pins], "pin", PINNABLE) if isinstance(pins, str) else pins
        said = {**said, "pins": checked_fields(assigned, "pin", PINNABLE)}
    if "forbids" in said:
        said = {**said, "forbids": parse_forbids(said["forbids"], "forbid")}
    return read_document(Constraints, said, "constraints")


def _list(value: Any) -> tuple[str, ...]:
    """``"cp,ep"`` and ``["cp", "ep"]`` alike."""
    return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else tuple(value)


def said_estimate(problem: Problem, strategy: str | Mapping[str, Any]) -> Plan:
    """The plan of one strategy, completed as the command line completes it.  Raises FindingsInvalid."""
    from planner.operations.estimate import estimated

    where = "strategy"
    fields = parse_assignments([strategy], where) if isinstance(strategy, str) else checked_fields(strategy, where)
    return estimated(problem, fields).plan


def said_replan(plan: Plan, said: Mapping[str, Any]) -> Replan:
    """Other devices for a plan.  Raises DocumentInvalid, NoFeasiblePlan."""
    from planner.operations.operation import Session
    from planner.operations.replan import REPLAN, ReplanRequest

    asked = read_document(ReplanRequest, {**said, "plan": plan.plan_id}, "replan")
    return REPLAN.work(Session(lambda _name: plan), asked)


def said_emission(plan: Plan, directory: Path, backend: str | None, launcher: str) -> Path:
    """Launch files in a folder.  Raises NotFound, BackEndRefused, Conflict for a folder that holds something else."""
    from planner.operations.emit import EMIT, EmitRequest
    from planner.operations.operation import Session

    asked = read_document(EmitRequest, {"plan": plan.plan_id, "backend": backend, "launcher": launcher}, "emit")
    return EMIT.work(Session(lambda _name: plan), asked).write(directory)
