"""``meshwright serving``: plan, estimate and explain deployments of serving engines.

One subcommand a module, each with ``register(group)``, in the order of ``--help``.
"""

from __future__ import annotations

import typer

from planner.cli.commands.serving import estimate, explain, plan


def register(app: typer.Typer) -> None:
    """Add the group."""
    help_text = "Serving engines: the best deployment for a traffic, what one gives, its files."
    group = typer.Typer(help=help_text, no_args_is_help=True, rich_markup_mode=None)
    for command in (plan, estimate, explain):
        command.register(group)
    app.add_typer(group, name="serving")
