"""The output of commands: data on stdout, messages on stderr, unstyled text into a pipe.

Every command hands its answer to ``write_answer``: plain JSON data for ``-o json|yaml`` and Rich renderables for
``-o table``.  Progress, notes and errors go to stderr, so ``meshwright ... -o json | jq`` always works.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PIPE_CLOSED_EXIT_CODE = 141
"""What a shell reports for a program stopped by SIGPIPE: the reader left, nothing is wrong."""

PIPED_WIDTH = 140
"""Columns of a table that no terminal wraps."""


class OutputFormat(StrEnum):
    """table for people, json and yaml for programs."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def make_streams_safe() -> None:
    """Keep an odd locale or file name from turning an answer into a UnicodeEncodeError."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def write_answer(data: Any, output: OutputFormat, table: Callable[[], Iterable[RenderableType]]) -> None:
    """Print ``data`` as JSON or YAML, or the renderables of ``table()`` (built only when wanted)."""
    if output is OutputFormat.TABLE:
        write_stdout(render_text(table()))
    else:
        write_stdout(to_json(data) if output is OutputFormat.JSON else to_yaml(data))


def to_json(data: Any) -> str:
    """Indented JSON; escaped to ASCII when stdout cannot carry UTF-8; refuses NaN."""
    import json

    return json.dumps(data, indent=2, ensure_ascii=not can_encode("é·█", sys.stdout), allow_nan=False) + "\n"


def to_yaml(data: Any) -> str:
    """Block-style YAML 1.2 of plain JSON data."""
    from ruamel.yaml import YAML

    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.allow_unicode = can_encode("é·█", sys.stdout)
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # its stub says None
    buffer = io.StringIO()
    writer.dump(data, buffer)
    return buffer.getvalue()


def render_text(renderables: Iterable[RenderableType]) -> str:
    """Rich renderables as text for stdout: colours and width of the terminal, plain and wide in a pipe."""
    console = console_for(sys.stdout)
    with console.capture() as capture:
        for renderable in renderables:
            console.print(renderable)
    lines = capture.get().split("\n")
    return "\n".join(line.rstrip() for line in lines)


def console_for(stream: Any) -> Console:
    """A Rich console that trusts nothing in user data (no markup, no emoji) and honours NO_COLOR and pipes."""
    from rich.console import Console

    terminal = bool(stream.isatty())
    return Console(
        file=stream,
        force_terminal=terminal and os.environ.get("TERM") != "dumb",
        no_color=bool(os.environ.get("NO_COLOR")) or None,
        width=None if terminal else _piped_width(),
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=False,
    )


def _piped_width() -> int:
    """Width of a table in a pipe: COLUMNS when it is a sane number, else wide."""
    text = os.environ.get("COLUMNS", "")
    return min(max(int(text), 60), 400) if text.isascii() and text.isdigit() and len(text) < 5 else PIPED_WIDTH


def can_encode(text: str, stream: Any) -> bool:
    """Can ``stream`` carry ``text`` in its encoding?"""
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def write_stdout(text: str) -> None:
    """Write to stdout and flush; a reader that left ends the command quietly."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()
        raise typer.Exit(PIPE_CLOSED_EXIT_CODE) from None


def silence_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush does not complain about a closed pipe."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)


def talk(text: str, *, quiet: bool = False) -> None:
    """Say something to a person: one line on stderr, never part of the answer."""
    if quiet:
        return
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except BrokenPipeError:
        pass
