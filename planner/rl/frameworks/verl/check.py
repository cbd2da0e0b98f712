"""Checks of a folder: read back, and asked of verl's own configuration."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from planner.backends.checking.environment import is_ready
from planner.backends.checking.worker import Worker
from planner.backends.emission.write import changed_files, read_manifest
from planner.errors import BackEndRefused, DocumentInvalid
from planner.rl.frameworks.verl.overrides import launch_from
from planner.rl.frameworks.verl.validator import VALIDATOR, request_of
from planner.rl.frameworks.verl.write import SCRIPT, words_of_script


@dataclass(frozen=True, slots=True)
class CheckedFolder:
    """What was checked, in words."""

    stages: tuple[str, ...]


def check_folder(path: Path, *, install: bool = False) -> CheckedFolder:
    """Every check.  Raises DocumentInvalid for a folder that is none of ours or cannot be read, BackEndRefused."""
    manifest = read_manifest(path)
    if manifest.get("framework") != "verl":
        raise DocumentInvalid(
            "no folder of an RL framework", where=str(path), hint="give what `meshwright rl plan --out` wrote"
        )
    stages = ["manifest: every file is as it was written"]
    changed = changed_files(path, manifest)
    if changed:
        stages = [f"manifest: edited since: {', '.join(sorted(str(each) for each in changed))}"]
    launch = launch_from(words_of_script((path / SCRIPT).read_text(encoding="utf-8")), str(path / SCRIPT))
    stages.append(f"read back: {launch.placement}, {launch.trainer}, engines tp={launch.rollout_tp}")
    if not (install or is_ready(VALIDATOR, VALIDATOR.default_version)):
        stages.append("verl itself was not asked: add --install-validators")
        return CheckedFolder(tuple(stages))
    with Worker(VALIDATOR, VALIDATOR.default_version) as worker:
        verdict = worker.ask(request_of(launch))
    if not verdict.accepted:
        raise BackEndRefused(f"verl {verdict.version} refuses at {verdict.stage}: {verdict.message}", where=str(path))
    facts = verdict.facts
    stages.append(
        f"verl {verdict.version}: composes; {facts['devices']} devices, {facts['mode']},"
        f" {facts['data_parallel']} replicas of the trainer"
    )
    return CheckedFolder(tuple(stages))
