"""``meshwright profile``: measurements of devices and networks.

One subcommand a module, each with ``register(group)``, in the order of ``--help``.
"""

from __future__ import annotations

import typer

from planner.cli.commands.profile import (
    calibrate,
    conflicts,
    coverage,
    drop,
    fits,
    formats,
    import_,
    list_,
    measure,
    show,
)


def register(app: typer.Typer) -> None:
    """Add the group."""
    help_text = "Measurements of devices and networks: import, list, compare."
    group = typer.Typer(help=help_text, no_args_is_help=True, rich_markup_mode=None)
    for command in (
        import_,
        measure,
        list_,
        show,
        coverage,
        fits,
        calibrate,
        conflicts,
        drop,
        formats,
    ):
        command.register(group)
    app.add_typer(group, name="profile")
