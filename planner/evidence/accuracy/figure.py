"""A figure of the report: its file, what it shows in one sentence, and the table that says the same."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FigureFile:
    """A written figure; ``table``: name of the ``ReportTable`` beside which it stands."""

    table: str
    title: str
    caption: str
    file_name: str
