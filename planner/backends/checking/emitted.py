"""The content of an emitted folder: manifest, texts and plan, read once for every tier."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.backends.emission.emission import PLAN_JSON
from planner.backends.emission.write import read_manifest
from planner.plan.plan import Plan


@dataclass(frozen=True, slots=True)
class EmittedFolder:
    """A folder that ``emit`` wrote; ``files`` holds those that the manifest lists and that can be read as text."""

    path: Path
    manifest: Mapping[str, Any]
    files: Mapping[str, str]

    @property
    def backend(self) -> str:
        """Name of the back-end."""
        return str(self.manifest.get("backend"))

    @property
    def launcher(self) -> str:
        """Name of the launcher."""
        return str(self.manifest.get("launcher"))

    @property
    def versions(self) -> Mapping[str, str]:
        """Software that the files are written for."""
        return self.manifest.get("versions") or {}

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables that every rank sees."""
        return self.manifest.get("environment") or {}

    def plan(self) -> Plan:
        """The plan beside the files.  Raises ValueError (or a subclass) when it is not one."""
        return Plan.model_validate(json.loads(self.files.get(PLAN_JSON, "")))


def read_folder(path: Path) -> EmittedFolder:
    """Load a folder.  Raises DocumentInvalid when it has no manifest of ours."""
    manifest = read_manifest(path)
    files = {}
    for name in manifest["files"]:
        try:
            files[name] = (path / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
    return EmittedFolder(path, manifest, files)
