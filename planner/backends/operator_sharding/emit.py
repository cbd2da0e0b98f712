"""A sharding plan as a folder that runs: the plan, a script for each rank, a launcher, words for people.

``sharding.json`` is what the runtime reads; ``train.py`` runs it operator by operator, with losses, from the module's
own package.  ``parallelize.py`` is for a training loop of one's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.backends.emission.write import KIND, SCHEMA_VERSION, file_digests, write_folder
from planner.backends.launch import LauncherName
from planner.backends.launch.launchers import launch_files
from planner.backends.launch.settings import LaunchSettings
from planner.backends.launch.spec import LaunchFiles, job_name, spec_on_cluster
from planner.backends.launch.torchrun import LAUNCH_SCRIPT, read_world_size
from planner.backends.native.capabilities import TORCH_VERSION
from planner.backends.operator_sharding.describe import sharding_markdown
from planner.backends.operator_sharding.parallelize import parallelize_script
from planner.backends.operator_sharding.plan_parts import part_digests
from planner.errors import DocumentInvalid
from planner.shard.read_sharding_plan import read_sharding_plan
from planner.shard.sharding_plan import ShardingPlan
from planner.version import __version__
from profiles.cluster import Cluster

OPERATOR_SHARDING = "operator-sharding"
PLAN_FILE, TRAIN_SCRIPT, PARALLELIZE_SCRIPT, MARKDOWN = "sharding.json", "train.py", "parallelize.py", "PLAN.md"
# Long runs with changing sizes fragment the allocator without it.
ENVIRONMENT = {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}
_TRAIN = f'''"""Runs once for each rank; the launcher starts it.  The plan is in {PLAN_FILE}: do not edit it.

TRAIN_ARGS holds words for the trainer, for example "--steps 1000 --data mypackage.loader:batch"; without --data it
trains on random inputs.  All of them: python -m planner.backends.native.trainer.operator_sharding.train --help
PYTHONPATH must lead to the module's package and to meshwright[torch].

Try it without devices:  TRAIN_ARGS="--device cpu --steps 2"
"""

import os
import shlex
import sys
from pathlib import Path

from planner.backends.native.trainer.operator_sharding.train import main

words = shlex.split(os.environ.get("TRAIN_ARGS", ""))
sys.exit(main([str(Path(__file__).parent / "{PLAN_FILE}"), *words, *sys.argv[1:]]))
'''


@dataclass(frozen=True, slots=True)
class ShardingEmission:
    """Everything needed to run a sharding plan; ``read_back(files) == plan``."""

    plan: ShardingPlan
    files: Mapping[str, str]
    launcher: LauncherName
    launch: LaunchFiles
    settings: LaunchSettings
    assumptions: tuple[str, ...]


def emit_sharding(
    plan: ShardingPlan,
    cluster: Cluster,
    launcher: LauncherName = "torchrun",
    settings: LaunchSettings = LaunchSettings(),  # noqa: B008  # frozen
) -> ShardingEmission:
    """The folder's files for the plan on ``cluster``.

    Raises BackEndRefused when the launcher cannot place the ranks, DocumentInvalid for settings that do not fit.
    """
    files = {
        PLAN_FILE: plan_text(plan),
        TRAIN_SCRIPT: _TRAIN,
        PARALLELIZE_SCRIPT: parallelize_script(plan),
    }
    name = job_name(plan.traced.title.rpartition(":")[2], plan.plan_id)
    spec = spec_on_cluster(
        cluster,
        plan.num_devices,
        name,
        TRAIN_SCRIPT,
        ENVIRONMENT,
        files=files,
        settings=settings,
        plan_id=plan.plan_id,
    )
    launch = launch_files(spec, launcher)
    made = assumptions(plan)
    words = sharding_markdown(plan, launch, made)
    return ShardingEmission(plan, {**files, **launch.files, MARKDOWN: words}, launcher, launch, settings, made)


def write_sharding(emission: ShardingEmission, directory: Path) -> Path:
    """Write the folder; returns it.  Raises Conflict where it holds anything else, DocumentInvalid from the disk."""
    return write_folder(emission.files, emission.launch.executables, manifest(emission), directory)


def manifest(emission: ShardingEmission) -> dict[str, Any]:
    """What is in the folder, what it was made from and for."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "backend": OPERATOR_SHARDING,
        "release": TORCH_VERSION,
        "launcher": emission.launcher,
        "launch": emission.settings.to_dict(),
        "plan_id": emission.plan.plan_id,
        "versions": {"meshwright": __version__, "torch": TORCH_VERSION},
        "launch_command": emission.launch.command,
        "environment": dict(ENVIRONMENT),
        "process_drives_node": False,
        "assumptions": list(emission.assumptions),
        "plan_parts": part_digests(emission.plan.model_dump(mode="json")),
        "files": file_digests(emission.files, emission.launch.executables),
    }


def plan_text(plan: ShardingPlan) -> str:
    """The whole plan, readable and loadable, with the same ``plan_id``."""
    return json.dumps(plan.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"


def assumptions(plan: ShardingPlan) -> tuple[str, ...]:
    """What must hold for the files to do what the plan says."""
    return (
        f"meshwright[torch] with torch {TORCH_VERSION} and the package of {plan.traced.title} are on every node.",
        "The module is traced again when it starts; another torch or a changed module is refused.",
        "Every rank builds the whole module once in host memory before it keeps its parts; weights start at random and"
        " no checkpoint is written.",
        "A whole batch is made on every rank and cut there; data, learning rate and number of steps are yours.",
    )


def read_back(files: Mapping[str, str]) -> ShardingPlan:
    """The plan of a folder's files.  Raises DocumentInvalid when they do not hold together."""
    for name in (PLAN_FILE, LAUNCH_SCRIPT):
        if name not in files:
            raise DocumentInvalid(f"{name} is missing", where=name, hint="emit the plan again")
    plan = read_sharding_plan(files[PLAN_FILE], PLAN_FILE)
    started = read_world_size(files[LAUNCH_SCRIPT])
    if started != plan.num_devices:
        raise DocumentInvalid(
            f"{LAUNCH_SCRIPT} starts {started} ranks, the plan has {plan.num_devices}",
            where=LAUNCH_SCRIPT,
            hint="emit the plan again",
        )
    return plan
