"""``meshwright profile formats``: what can be imported."""

from __future__ import annotations

import typer

from planner.cli.options import Output
from planner.cli.output import OutputFormat, write_answer

TAKES = {"file": "a file", "files": "files together", "folder": "a folder"}


def register(group: typer.Typer) -> None:
    """Add the command."""
    group.command("formats")(formats)


def formats(output: Output = OutputFormat.TABLE) -> None:
    """Formats that `profile import` reads, in the order in which a file is tried."""
    from profiles.importing.formats import format_names, load_format

    known = [load_format(name) for name in format_names()]
    data = [
        {"format": each.name, "title": each.title, "takes": each.takes, "parser_version": each.parser_version}
        for each in known
    ]

    def tables() -> list[object]:
        from planner.cli.render.tables import table

        return [
            table("", ("format", "what", "read as"), [(each.name, each.title, TAKES[each.takes]) for each in known])
        ]

    write_answer(data, output, tables)  # type: ignore[arg-type]
