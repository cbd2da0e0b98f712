"""The build hook of the wheel: no wheel without the web pages is built by accident."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

WITHOUT = "MESHWRIGHT_WITHOUT_WEB"


class WebPages(BuildHookInterface):  # type: ignore[type-arg]
    """Refuses to build a wheel from a tree without ``api/static``; an editable install may be without."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before files are collected; ``version`` is the kind of wheel."""
        built = (Path(self.root) / "api" / "static" / "index.html").is_file()
        if version == "editable" or built or os.environ.get(WITHOUT) == "1":
            return
        raise FileNotFoundError(
            f"the web pages are not built: run `make web` first, or set {WITHOUT}=1 for a wheel without them"
        )
