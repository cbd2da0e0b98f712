"""Launch files as one zip: their names are checked, and the bytes depend on the content only."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Mapping
from typing import Any

from planner.errors import BackEndRefused

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first moment that a zip can say: equal content, equal archive."""
MANIFEST = "manifest.json"
_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


def zip_of(emission: Mapping[str, Any]) -> bytes:
    """The archive of an emission's files and manifest.  Raises BackEndRefused for a name that leaves its folder."""
    executable = {path for path, entry in emission["manifest"]["files"].items() if entry["executable"]}
    files = {**emission["files"], MANIFEST: json.dumps(emission["manifest"], indent=1, ensure_ascii=False) + "\n"}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(files):
            check_name(path)
            entry = zipfile.ZipInfo(path, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if path in executable else 0o100644) << 16
            archive.writestr(entry, files[path])
    return buffer.getvalue()


def check_name(path: str) -> None:
    """Refuse whatever is not a plain relative path.  Raises BackEndRefused."""
    if not all(_PART.fullmatch(part) for part in path.split("/")):
        raise BackEndRefused("a launch file has a name that no archive may hold", hint="emit it with the command line")
