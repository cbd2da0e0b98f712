"""How do commands write launch files?  One folder a target, and what was given up said aloud."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.cli.options import TargetChoice
from planner.cli.output import talk
from planner.errors import DocumentInvalid
from planner.spelling import did_you_mean

if TYPE_CHECKING:
    from planner.backends.emission.for_target import TargetEmission
    from planner.backends.launch.settings import LaunchSettings
    from planner.plan import Plan

TARGET_NAMES = tuple(choice.value for choice in TargetChoice if choice is not TargetChoice.ANY)


class LauncherChoice(StrEnum):
    """Who starts the processes."""

    TORCHRUN = "torchrun"
    SLURM = "slurm"
    KUBERNETES = "kubernetes"
    TRAINJOB = "trainjob"
    PYTORCHJOB = "pytorchjob"
    VOLCANO = "volcano"
    MPIRUN = "mpirun"
    MPIJOB = "mpijob"
    RAY = "ray"
    RAY_TRAIN = "ray-train"
    ASCENDJOB = "ascendjob"


def parse_targets(text: str | None, where: str = "--emit") -> tuple[str, ...]:
    """``megatron,torchtitan==0.2.2`` as its parts.  Raises DocumentInvalid for unknown names, or a name given twice."""
    texts = tuple(dict.fromkeys(part.strip() for part in text.split(","))) if text is not None else ()
    names = [bare_name(each) for each in texts]
    for name in names:
        if name not in TARGET_NAMES:
            raise DocumentInvalid(f"no emitter is called {name!r}", where=where, hint=did_you_mean(name, TARGET_NAMES))
        if names.count(name) > 1:
            raise DocumentInvalid(f"{name} is named twice", where=where, hint="emit one version at a time")
    return texts


def bare_name(target: str) -> str:
    """``torchtitan==0.2.2`` -> ``torchtitan``."""
    return target.partition("==")[0]


def write_target(
    plan: Plan,
    target: str,
    launcher: LauncherChoice,
    directory: Path,
    *,
    quiet: bool,
    settings: LaunchSettings | None = None,
) -> dict[str, Any]:
    """Emit into ``directory``; returns what was written as plain data.  Raises BackEndRefused, Conflict."""
    from planner.backends.emission.for_target import emit_for_target
    from planner.backends.emission.write import write_emission
    from planner.backends.launch.settings import LaunchSettings

    made = emit_for_target(plan, target, launcher.value, settings or LaunchSettings())
    data = emission_data(made, write_emission(made.emission, directory))
    tell_projections(target, data, quiet=quiet)
    return data


def tell_projections(target: str, data: Mapping[str, Any], *, quiet: bool) -> None:
    """Say aloud that the target runs something else than was wanted."""
    if data["projections"]:
        change = f"{abs(data['slower_by']):.1%} {'slower' if data['slower_by'] >= 0 else 'faster'}"
        talk(f"{target} cannot express the whole plan; what it runs is {change} (see what was given up)", quiet=quiet)


def emission_data(made: TargetEmission, directory: Path) -> dict[str, Any]:
    """What a program wants to know about an emission."""
    from planner.backends.emission.write import manifest

    return emission_data_of_manifest(
        {
            "manifest": manifest(made.emission),
            "slower_by": made.slower_by,
            "step_time_s": made.emission.plan.step_time_s,
            "launch_notes": list(made.emission.launch_notes),
        },
        directory,
    )


def emission_data_of_manifest(view: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """The same from what a service says of it: ``manifest``, ``slower_by``, ``step_time_s``, ``launch_notes``."""
    manifest = view["manifest"]
    return {
        "target": manifest["target"],
        "target_version": manifest["target_version"],
        "launcher": manifest["launcher"],
        "launch_notes": list(view["launch_notes"]),
        "directory": os.path.abspath(directory),
        "launch_command": manifest["launch_command"],
        "environment": dict(manifest["environment"]),
        "files": sorted(manifest["files"]),
        "versions": {name: text for name, text in manifest["versions"].items() if name != "meshwright"},
        "plan_id": manifest["plan_id"],
        "step_time_s": view["step_time_s"],
        "slower_by": view["slower_by"],
        "projections": [dict(each) for each in manifest["projections"]],
        "assumptions": list(manifest["assumptions"]),
    }


def emission_lines(data: dict[str, Any]) -> list[str]:
    """The same for a person: where it is, how to start it, what was given up and why."""
    where = f"{data['target']} files for {data['launcher']} in {data['directory']}"
    lines = [where, f"  start: {data['launch_command']}"]
    lines += [f"  note: {note}" for note in data["launch_notes"]]
    for reason, run in groupby(data["projections"], key=lambda each: each["reason"]):
        changes = ", ".join(f"{each['field']} {each['wanted']} -> {each['emitted']}" for each in run)
        lines.append(f"  given up: {changes}: {reason}")
    keepers = {each["field"]: each["kept_by"] for each in data["projections"] if each["kept_by"]}
    for names, run in groupby(keepers.items(), key=lambda item: item[1]):
        lines.append(f"  {', '.join(field for field, _ in run)} as wanted: {', '.join(names)}")
    if data["projections"]:
        change = f"{abs(data['slower_by']):.1%} {'slower' if data['slower_by'] >= 0 else 'faster'}"
        lines.append(f"  the emitted plan is {change} than the wanted one")
    return lines
