"""The flags that the ``profile`` commands share."""

from __future__ import annotations

from typing import Annotated

import typer

INSTALLED = "aiconfigurator"
"""The word for the installed package, and the format of its tables."""

Profiles = Annotated[
    str | None,
    typer.Option(
        "--profiles",
        metavar="DIR",
        help="Folder of measurements (default: $MESHWRIGHT_PROFILES, else the data folder).",
    ),
]
Device = Annotated[
    list[str] | None,
    typer.Option("--device", metavar="NAME", help="Only this device (catalogue name, or as reported). Repeatable."),
]
