"""All platforms, and the folder of a deployment: written, read back, checked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.worker import Worker
from planner.backends.emission.write import KIND, MANIFEST, SCHEMA_VERSION, changed_files, file_digests, read_manifest
from planner.errors import BackEndRefused, DocumentInvalid, NotFound, ValidatorUnavailable
from planner.model.spec import ModelSpec
from planner.serving.engines.engine import Asked, Engine, Served
from planner.serving.engines.facts import model_facts
from planner.serving.engines.registry import ENGINES
from planner.serving.layout import Deployment
from planner.serving.platforms import dynamo, llm_d, plain, ray_serve, triton
from planner.serving.platforms.platform import Files, Given, Platform, Written
from planner.version import __version__
from profiles.cluster import Cluster
from profiles.device import Device

PLATFORMS: dict[str, Platform] = {
    room.PLATFORM.name: room.PLATFORM for room in (plain, dynamo, triton, ray_serve, llm_d)
}
DEPLOYMENT, ASKED = "deployment.json", "asked.json"
"""What was deployed, and for which model, device and checkpoint; the platform reads neither."""
Stage = Literal["files", "read back", "rules", "platform", "engine"]


@dataclass(frozen=True, slots=True)
class Folder:
    """The files of a deployment, and what is said of them (``planner.backends.emission.write.write_folder``)."""

    files: Files
    executables: frozenset[str]
    manifest: dict[str, Any]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckedStage:
    """One check of a folder; ``passed`` is none where it could not be made, and ``message`` says why."""

    stage: Stage
    passed: bool | None
    message: str = ""


def platform(name: str) -> Platform:
    """The platform of that name.  Raises NotFound."""
    if name not in PLATFORMS:
        raise NotFound(f"no platform is called {name!r}", where="--platform", hint=f"one of {', '.join(PLATFORMS)}")
    return PLATFORMS[name]


def write_deployment(
    deployment: Deployment, model: ModelSpec, cluster: Cluster, platform_name: str, served: Served
) -> Folder:
    """The folder that starts the deployment on a platform.

    Raises NotFound for an unknown platform, BackEndRefused where the engine's rules or the platform refuse.
    """
    room, engine, pool = platform(platform_name), ENGINES[deployment.engine], cluster.pools[0]
    if deployment.engine not in room.engines:
        raise BackEndRefused(
            f"{room.title} does not run {engine.title}", where="--platform", hint=f"it runs {', '.join(room.engines)}"
        )
    served = replace(served, num_experts=model_facts(model).num_experts)
    asked: dict[str, Any] = {"model": model.model_dump(mode="json"), "device": pool.device.model_dump(mode="json")}
    asked |= {"served": asdict(served), "devices_per_node": pool.devices_per_node}
    broken = _broken(deployment, asked)
    if broken:
        raise BackEndRefused(broken[0], where="/groups", hint="see the message")
    name = re.sub(r"[^a-z0-9]+", "-", model.name.lower()).strip("-") or "model"
    written = room.write(Given(deployment, served, name, pool.devices_per_node))
    files = {**written.files, DEPLOYMENT: _text(deployment.model_dump(mode="json")), ASKED: _text(asked)}
    return Folder(files, written.executables, _manifest(deployment, room, written, files), written.notes)


def _text(data: Any) -> str:
    return json.dumps(data, indent=1, sort_keys=True) + "\n"


def _manifest(deployment: Deployment, room: Platform, written: Written, files: Files) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "backend": deployment.engine,
        "release": deployment.release,
        "launcher": room.name,
        "versions": {"meshwright": __version__, deployment.engine: deployment.release, room.name: room.release},
        "launch_command": written.launch,
        "assumptions": list(written.notes),
        "files": file_digests(files, written.executables),
    }


def read_deployment(files: Mapping[str, str], platform_name: str, engine: Engine, served: Served) -> Deployment:
    """The deployment that a platform's files start; ``served`` says how the checkpoint is stored.

    Raises DocumentInvalid.
    """
    groups = platform(platform_name).read(dict(files), engine)
    read = [engine.read_arguments(group.arguments, served) for group in groups]
    if any(each.unread for each in read):
        names = sorted({name for each in read for name in each.unread})
        raise DocumentInvalid(f"no part of a deployment stands for {', '.join(names)}", where=names[0])
    if len({each.formats for each in read}) > 1:
        raise DocumentInvalid("prefill and decode instances have different formats", where="formats")
    made = tuple(
        each.group.model_copy(update={"num_instances": group.num_instances})
        for each, group in zip(read, groups, strict=True)
    )
    return Deployment(engine=engine.name, release=engine.releases[0], formats=read[0].formats, groups=made)


def _broken(deployment: Deployment, asked: Mapping[str, Any]) -> list[str]:
    """What the engine's rules say of the groups."""
    facts, device = model_facts(ModelSpec.model_validate(asked["model"])), Device.model_validate(asked["device"])
    served = Served(**asked["served"])
    about = (facts, device, deployment.release, deployment.formats)
    return [
        f"{broken.id}: {broken.message}"
        for group in deployment.groups
        for broken in ENGINES[deployment.engine].findings(Asked(*about, group, served, int(asked["devices_per_node"])))
    ]


def read_folder(path: Path) -> tuple[Deployment, Served]:
    """What a folder of ``write_deployment`` starts, from the files that the platform reads.  Raises DocumentInvalid."""
    manifest = read_manifest(path)
    files = {name: (path / name).read_text(encoding="utf-8") for name in manifest["files"]}
    served = Served(**json.loads(files[ASKED])["served"])
    return read_deployment(files, str(manifest["launcher"]), ENGINES[manifest["backend"]], served), served


def check_folder(path: Path, *, with_engine: bool = False) -> list[CheckedStage]:
    """Every check of a folder, in turn; ``with_engine`` asks the engine's own parser, and installs it where it must.

    Raises NotFound where the folder has no manifest, DocumentInvalid where it is not one of ours.
    """
    if not (path / MANIFEST).is_file():
        hint = "give a folder that meshwright serving emit wrote"
        raise NotFound(f"there is no {MANIFEST} in it", where=str(path), hint=hint)
    manifest = read_manifest(path)
    if manifest.get("backend") not in ENGINES or manifest.get("launcher") not in PLATFORMS:
        hint = "meshwright check is for folders of training plans"
        raise DocumentInvalid("no serving engine and platform wrote it", where=str(path / MANIFEST), hint=hint)
    changed = changed_files(path, manifest)
    found = [CheckedStage("files", not changed, ", ".join(f"{name} is {what}" for name, what in changed))]
    if any(what == "missing" or name in {DEPLOYMENT, ASKED} for name, what in changed):
        return found  # nothing to read, or nothing left to hold it against
    try:
        files = {name: (path / name).read_text(encoding="utf-8") for name in manifest["files"]}
    except UnicodeDecodeError as error:
        return [*found, CheckedStage("read back", False, f"a file is not UTF-8 text: {error.reason}")]
    try:
        deployment, _ = read_folder(path)
    except DocumentInvalid as error:
        return [*found, CheckedStage("read back", False, str(error))]
    planned = Deployment.model_validate_json(files[DEPLOYMENT])
    same = deployment == planned
    found.append(CheckedStage("read back", same, "" if same else "the files start another deployment than was planned"))
    broken = _broken(deployment, json.loads(files[ASKED]))
    found.append(CheckedStage("rules", not broken, "; ".join(broken)))
    wrong = platform(str(manifest["launcher"])).check(files)
    found.append(CheckedStage("platform", not wrong, "; ".join(wrong)))
    if not with_engine:
        return found
    emitted = EmittedFolder(path, manifest, files)
    if triton.VALIDATOR.applies(emitted):
        found.append(_asked_triton(emitted))
    return [*found, *_asked_engine(deployment, json.loads(files[ASKED]))]


def _asked_triton(folder: EmittedFolder) -> CheckedStage:
    try:
        with Worker(triton.VALIDATOR, triton.VALIDATOR.default_version) as worker:
            said = worker.ask(triton.VALIDATOR.request(folder))
    except ValidatorUnavailable as error:
        return CheckedStage("platform", None, str(error))
    return CheckedStage("platform", said.accepted, said.message or "config.pbtxt is a ModelConfig of Triton")


def _asked_engine(deployment: Deployment, asked: Mapping[str, Any]) -> list[CheckedStage]:
    from planner.serving.engines.checking import checkpoint_config, runs_of
    from planner.serving.engines.validators import VALIDATORS

    validator = VALIDATORS.get(deployment.engine)
    if validator is None:
        return [
            CheckedStage("engine", None, f"{ENGINES[deployment.engine].title} has no parser that runs without a GPU")
        ]
    served, model = Served(**asked["served"]), ModelSpec.model_validate(asked["model"])
    engine, found = ENGINES[deployment.engine], []
    try:
        config = checkpoint_config(model, served)
        with Worker(validator, deployment.release, timeout_s=300) as worker:
            for group in deployment.groups:
                command = engine.command(deployment, group, served, int(asked["devices_per_node"]))
                for run in runs_of(group.role, command, group.layout.num_devices, 3):
                    said = worker.ask({"config": config, **run})
                    lacking = str(said.facts.get("lacking", ""))
                    message = f"{run['of']}: {said.message or lacking}" if said.message or lacking else str(run["of"])
                    found.append(CheckedStage("engine", said.accepted, message))
    except (ValidatorUnavailable, DocumentInvalid) as error:
        found.append(CheckedStage("engine", None, str(error)))
    return found
