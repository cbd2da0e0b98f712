"""The entry point: reads a command line, runs one command, turns every failure into an exit code.

    options, problem_inputs      flags -> checked documents
    reading, plan_reference      files and stored plans -> documents
    commands/                    one command a file, each with ``register(app)``
    render/                      documents -> tables, bars, timelines
    output, progress, failure    stdout, stderr, exit codes

Nothing heavy is imported here: pydantic, numpy, SQLAlchemy and the solvers load inside the commands that need them.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Annotated

import typer
from typer.exceptions import TyperException

from planner.backends.entry_points import EntryPoint, entry_points
from planner.cli.failure import DEBUG_VARIABLE, failure_of, report, wants_json
from planner.cli.output import PIPE_CLOSED_EXIT_CODE, make_streams_safe, silence_stdout, write_stdout
from planner.version import __version__

COMMAND_GROUP = "meshwright.commands"
"""Entry points of commands that other packages add, the service's among them: each names a ``register(app)``."""

INTERRUPTED_EXIT_CODE = 130
VERSION_LINE = f"meshwright {__version__}\n"

CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 120}


def build_app(only: str = "") -> typer.Typer:
    """The whole command tree; where ``only`` names a command of this package, that one alone (a tenth of the time).

    Groups of commands come with the whole tree, because other packages add commands to them.
    """
    app = typer.Typer(
        name="meshwright",
        help="Plan how a large model runs on a cluster: proved, explained, ready to launch.",
        epilog="Exit codes: 0 done, 1 bug, 2 bad input, 3 not found, 4 conflict, 5 no feasible plan, 6 budget spent, "
        "7 profile missing, 8 back-end refused.",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=True,
        no_args_is_help=True,
        context_settings=CONTEXT,
    )
    app.callback()(_root)
    commands = {command.__name__.rpartition(".")[2]: command for command in _own_commands()}
    if only in commands:
        commands[only].register(app)
        return build_app() if app.registered_groups else app
    for command in commands.values():
        command.register(app)
    for point in sorted(entry_points(COMMAND_GROUP), key=lambda each: each.name):
        register = _loaded(point)
        if register is not None:
            register(app)
    return app


def _own_commands() -> tuple[ModuleType, ...]:
    """The commands of this package, in the order of ``--help``; each module has the name of its command."""
    from planner.cli.commands import (
        accuracy,
        backends,
        check,
        clusters,
        db,
        devices,
        diagnose,
        diff,
        emit,
        estimate,
        explain,
        fleet,
        goodput,
        models,
        place,
        plan,
        plans,
        profile,
        replan,
        rl,
        run,
        sensitivity,
        serving,
        shard,
        sweep,
        throughput,
        towers,
    )

    return (
        plan,
        estimate,
        throughput,
        towers,
        serving,
        rl,
        fleet,
        replan,
        explain,
        diff,
        sensitivity,
        goodput,
        place,
        diagnose,
        emit,
        check,
        run,
        shard,
        models,
        clusters,
        devices,
        backends,
        plans,
        sweep,
        profile,
        accuracy,
        db,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    # Imports and searches make many objects that stay: looking through them for cycles takes a fifth of a command.
    gc.set_threshold(100_000, 20, 100)
    # At its end Python looks through everything that is left (0.1 s); nothing of it needs more than the memory back.
    atexit.register(gc.freeze)
    make_streams_safe()
    try:
        return _run(arguments)
    except BrokenPipeError:
        silence_stdout()
        return PIPE_CLOSED_EXIT_CODE
    except (Exception, KeyboardInterrupt) as error:
        if os.environ.get(DEBUG_VARIABLE) and not isinstance(error, TyperException):
            import traceback

            traceback.print_exc()
        failure = failure_of(error, arguments, build_app)
        report(failure, as_json=wants_json(arguments))
        return failure.exit_code


def _run(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        # Most of the start is building the command tree.
        write_stdout(VERSION_LINE)
        return 0
    result = build_app(*arguments[:1])(arguments, prog_name="meshwright", standalone_mode=False)
    # Typer swallows the interrupt and keeps only its exit code; the person should read that nothing was written.
    if result == INTERRUPTED_EXIT_CODE:
        raise KeyboardInterrupt
    return result if isinstance(result, int) else 0


def _loaded(point: EntryPoint) -> Callable[[typer.Typer], None] | None:
    """What an entry point names; None where its package is declared but not there (an installation without ``api``)."""
    try:
        register: Callable[[typer.Typer], None] = point.load()
    except ModuleNotFoundError as error:
        if error.name is None or not f"{point.module}.".startswith(f"{error.name}."):
            raise
        return None
    return register


def _print_version(wanted: bool) -> None:
    if wanted:
        write_stdout(VERSION_LINE)
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Plan how a large model runs on a cluster: proved, explained, ready to launch."""


if __name__ == "__main__":
    sys.exit(main())
