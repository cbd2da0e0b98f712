"""The flags that the commands of the service share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class LogFormatChoice(StrEnum):
    """How the log is written."""

    TEXT = "text"
    JSON = "json"


LogFormat = Annotated[
    LogFormatChoice | None, typer.Option("--log-format", help="Lines for people (text, the default) or machines.")
]
SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE", help="YAML with more settings: OIDC, retention, limits; flags win."),
]
