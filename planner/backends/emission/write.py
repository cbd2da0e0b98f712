"""Writes an emission to the disk, whole or not at all.

Everything is written to a temporary directory beside the wanted one, flushed, and renamed into place.  A directory
that is already there is replaced only if it is an earlier emission that nobody changed.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from planner.backends.emission.emission import Emission
from planner.errors import Conflict, DocumentInvalid, MeshwrightError
from planner.version import __version__

MANIFEST = "manifest.json"
KIND = "meshwright-emission"
SCHEMA_VERSION = 2
"""Version 1 said ``target`` and ``target_version``, and what was given up; its manifests are still read."""


def write_emission(emission: Emission, directory: Path) -> Path:
    """Write all files and ``manifest.json``; returns the directory.  Raises what ``write_folder`` raises."""
    return write_folder(emission.files, emission.executables, manifest(emission), directory)


def write_folder(
    files: Mapping[str, str], executables: frozenset[str], described: Mapping[str, Any], directory: Path
) -> Path:
    """Write ``files`` and ``described`` as their ``manifest.json``; returns the directory.

    Raises Conflict when ``directory`` holds anything that an untouched earlier emission does not, DocumentInvalid when
    the file system refuses (full, read-only, no permission).  In both cases nothing is left behind.
    """
    directory = Path(os.path.abspath(directory))
    _refuse_foreign(directory)
    staging: Path | None = None
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
        _fill(staging, files, executables, described)
        _swap(staging, directory)
    except OSError as error:
        raise _refused(error, directory) from error
    finally:
        if staging is not None:
            shutil.rmtree(staging, ignore_errors=True)
    return directory


def manifest(emission: Emission) -> dict[str, Any]:
    """What is in the directory, what it was made from and for."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": KIND,
        "backend": emission.backend,
        "release": emission.written.version,
        "launcher": emission.launcher,
        "launch": emission.settings.to_dict(),
        "plan_id": emission.plan.plan_id,
        "problem_id": emission.plan.problem.problem_id,
        "versions": {"meshwright": __version__, **emission.written.versions},
        "launch_command": emission.launch_command,
        "environment": dict(emission.written.environment),
        "process_drives_node": emission.written.process_drives_node,
        "assumptions": list(emission.written.assumptions),
        "files": file_digests(emission.files, emission.executables),
    }


def file_digests(files: Mapping[str, str], executables: frozenset[str]) -> dict[str, dict[str, Any]]:
    """What the manifest says of each file."""
    return {path: {"sha256": sha256(text), "executable": path in executables} for path, text in sorted(files.items())}


def sha256(text: str) -> str:
    """Hex digest of the UTF-8 bytes."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_manifest(directory: Path) -> dict[str, Any]:
    """Load ``manifest.json``.  Raises DocumentInvalid when it is absent or is not ours."""
    path = directory / MANIFEST
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        hint = "give a directory that `meshwright emit` or an `--out` wrote"
        raise DocumentInvalid(f"no readable {MANIFEST} in {directory}", where=str(path), hint=hint) from error
    except (ValueError, RecursionError) as error:
        raise DocumentInvalid(f"{MANIFEST} is not JSON", where=str(path), hint="emit the plan again") from error
    if not isinstance(data, dict) or data.get("kind") != KIND or not _well_formed(data.get("files")):
        raise DocumentInvalid(f"{MANIFEST} was not written by Meshwright", where=str(path), hint="emit the plan again")
    if data.get("schema_version") == 1:
        renamed = {"target": "backend", "target_version": "release"}
        data = {renamed.get(name, name): value for name, value in data.items()}
        data["schema_version"] = SCHEMA_VERSION
    if data.get("schema_version") != SCHEMA_VERSION:
        raise DocumentInvalid(
            f"{MANIFEST} has schema_version {data.get('schema_version')!r}, this version reads {SCHEMA_VERSION}",
            where=f"{path}#/schema_version",
            hint="emit the plan again with this version",
        )
    return dict(data)


def _well_formed(files: object) -> bool:
    """Whether ``files`` maps paths inside the directory to objects with a digest."""
    return isinstance(files, dict) and all(
        isinstance(path, str)
        and not os.path.isabs(path)
        and ".." not in Path(path).parts
        and isinstance(entry, dict)
        and isinstance(entry.get("sha256"), str)
        for path, entry in files.items()
    )


def changed_files(
    directory: Path, data: dict[str, Any]
) -> tuple[tuple[str, Literal["missing", "edited", "added"]], ...]:
    """Files that are missing, edited or not listed, each with what happened to it."""
    changes: list[tuple[str, Literal["missing", "edited", "added"]]] = []
    for path, entry in data["files"].items():
        full = directory / path
        if not full.is_file():
            changes.append((path, "missing"))
        elif hashlib.sha256(full.read_bytes()).hexdigest() != entry["sha256"]:
            changes.append((path, "edited"))
    listed = set(data["files"]) | {MANIFEST}
    found = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if not path.is_dir()}
    return (*changes, *((path, "added") for path in sorted(found - listed)))


def _refuse_foreign(directory: Path) -> None:
    where = f"--out {directory}"
    try:
        if not os.path.lexists(directory):
            return
        if not directory.is_dir() or directory.is_symlink():
            hint = "choose a directory that does not exist yet"
            raise Conflict(f"{directory} is not a plain directory", where=where, hint=hint)
        if not any(directory.iterdir()):
            return
        try:
            changes = changed_files(directory, read_manifest(directory))
        except DocumentInvalid as error:
            hint = "choose an empty or new directory"
            raise Conflict(f"{directory} is not empty and is not an emission", where=where, hint=hint) from error
    except OSError as error:
        raise _refused(error, directory) from error
    if changes:
        shown = ", ".join(f"{name} ({state})" for name, state in changes[:5]) + (" ..." if len(changes) > 5 else "")
        raise Conflict(
            f"{directory} holds an earlier emission that was changed since: {shown}",
            where=where,
            hint="move your files away or choose another directory; nothing was overwritten",
        )


def _fill(staging: Path, files: Mapping[str, str], executables: frozenset[str], described: Mapping[str, Any]) -> None:
    texts = {**files, MANIFEST: json.dumps(described, indent=1, ensure_ascii=False) + "\n"}
    for path, text in texts.items():
        full = staging / path
        full.parent.mkdir(parents=True, exist_ok=True)
        with full.open("w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        full.chmod(0o755 if path in executables else 0o644)
    staging.chmod(0o755)


def _swap(staging: Path, directory: Path) -> None:
    """Put ``staging`` in the place of ``directory``; on failure the old directory is back where it was."""
    if not directory.exists() or not any(directory.iterdir()):
        os.rename(staging, directory)
        return
    retired = Path(tempfile.mkdtemp(prefix=f".{directory.name}.old.", dir=directory.parent))
    try:
        os.rename(directory, retired)
        try:
            os.rename(staging, directory)
        except OSError:
            os.rename(retired, directory)
            raise
    finally:
        if directory.exists():
            shutil.rmtree(retired, ignore_errors=True)


def _refused(error: OSError, directory: Path) -> MeshwrightError:
    reasons = {
        errno.ENOSPC: ("the disk is full", "free some space or choose another disk"),
        errno.EDQUOT: ("the disk quota is used up", "free some space or choose another disk"),
        errno.EROFS: ("the file system is read-only", "choose a writable directory"),
        errno.EACCES: ("permission denied", "choose a directory that you may write to"),
        errno.EPERM: ("permission denied", "choose a directory that you may write to"),
        errno.ENOTDIR: ("a part of the path is a file", "choose another directory"),
        errno.EEXIST: ("a part of the path is a file", "choose another directory"),
        errno.ENAMETOOLONG: ("the path is too long", "choose a shorter path"),
    }
    reason, hint = reasons.get(error.errno or 0, (error.strerror or str(error), "choose another directory"))
    return DocumentInvalid(
        f"cannot write the emission: {reason}; nothing was written", where=f"--out {directory}", hint=hint
    )
