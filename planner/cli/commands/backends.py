"""``meshwright backends``: which software can plans be made for, in which releases, and what each can do here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from planner.cli import options as flags
from planner.cli.backend_names import complete_backends
from planner.cli.output import OutputFormat, write_answer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.backends.backend import BackEnd

Name = Annotated[
    str, typer.Argument(metavar="BACKEND", help="A name of backends list.", autocompletion=complete_backends)
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    help_text = "Back-ends: list the software that plans can be made for, show one."
    group = typer.Typer(help=help_text, no_args_is_help=True, rich_markup_mode=None)
    group.command("list")(list_known)
    group.command("show")(show)
    app.add_typer(group, name="backends")


def list_known(output: flags.Output = OutputFormat.TABLE) -> None:
    """Names for --backend, the default release of each first."""
    from planner.backends.registry import backends

    rows = [backend_data(each) for each in backends().values()]
    write_answer(rows, output, lambda: _list_table(rows))


def show(name: Name, output: flags.Output = OutputFormat.TABLE) -> None:
    """One back-end: its releases, devices, validators, and the physics that predictions for it use."""
    from planner.backends.registry import backend

    data = backend_data(backend(name, "backends show"))
    write_answer(data, output, lambda: _show_table(data))


def backend_data(found: BackEnd) -> dict[str, Any]:
    """A back-end as plain data."""
    return {
        "name": found.name,
        "title": found.title,
        "summary": found.summary,
        "releases": [each.version for each in found.releases],
        "physics": {each.version: each.physics.name for each in found.releases},
        "vendors": sorted(found.vendors),
        "writes_files": found.files is not None,
        "validators": [each.name for each in found.validators()],
        "tiny_run": found.tiny_run is not None,
    }


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _list_table(rows: list[dict[str, Any]]) -> list[RenderableType]:
    from planner.cli.render.tables import table

    cells = [
        (
            row["name"],
            row["title"],
            ", ".join(row["releases"]),
            ", ".join(row["vendors"]) or "any",
            _yes(row["writes_files"]),
            _yes(row["tiny_run"]),
        )
        for row in rows
    ]
    return [table("", ("name", "back-end", "releases", "devices of", "writes files", "runs tiny"), cells)]


def _show_table(row: dict[str, Any]) -> list[RenderableType]:
    from planner.cli.render.tables import facts

    return [
        facts(
            [
                ("name", row["name"]),
                ("back-end", row["title"]),
                ("what", row["summary"]),
                ("releases", ", ".join(row["releases"])),
                ("physics", ", ".join(dict.fromkeys(row["physics"].values()))),
                ("devices of", ", ".join(row["vendors"]) or "any maker"),
                ("writes files", _yes(row["writes_files"])),
                ("validators", ", ".join(row["validators"]) or "none"),
                ("runs tiny", _yes(row["tiny_run"])),
            ]
        )
    ]
