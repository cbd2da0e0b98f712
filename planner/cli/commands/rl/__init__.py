"""``meshwright rl``: RL post-training.

One subcommand a module, each with ``register(group)``, in the order of ``--help``.
"""

from __future__ import annotations

import typer

from planner.cli.commands.rl import accuracy, check, estimate, plan


def register(app: typer.Typer) -> None:
    """Add the group."""
    help_text = "RL post-training: who generates, who trains, in which layouts."
    group = typer.Typer(help=help_text, no_args_is_help=True, rich_markup_mode=None)
    for command in (plan, estimate, check, accuracy):
        command.register(group)
    app.add_typer(group, name="rl")
