"""The failure of a command: one message with what, where and hint on stderr, and the documented exit code.

| exit | meaning | slug |
|---|---|---|
| 0 | done | |
| 1 | a bug in Meshwright | ``internal`` |
| 2 | bad usage or input | ``usage``, ``document-invalid``, ``file-unusable`` |
| 3 | a name, id, file or validator that is not there | ``not-found``, ``validator-unavailable`` |
| 4 | something immutable would change, or inputs contradict each other | ``conflict`` |
| 5 | no feasible plan | ``no-feasible-plan`` |
| 6 | time limit before any plan | ``budget-spent`` |
| 7 | a number that only a measurement can give | ``profile-missing`` |
| 8 | the back-end refuses the configuration | ``backend-refused`` |
| 130 | interrupted | ``interrupted`` |

With ``-o json`` the same failure is a JSON object on stderr; stdout stays empty or holds a whole answer.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer
from typer.exceptions import TyperException

from planner.cli.backend_names import RENAMED
from planner.errors import MeshwrightError, NoFeasiblePlan

DEBUG_VARIABLE = "MESHWRIGHT_DEBUG"

SERVER_FLAG = "--server"
PLAIN_WORDS = {
    "Input should be a valid integer, unable to parse string as an integer": "the value is not a whole number",
    "Input should be a valid number, unable to parse string as a number": "the value is not a number",
}
"""What the option parser says -> what a person says."""


class Interrupted(Exception):  # a person's wish, not an error
    """Stopped by Ctrl-C after a part was done; ``str`` says what is kept, ``hint`` how to go on."""

    def __init__(self, what: str, hint: str | None = None) -> None:
        super().__init__(what)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Failure:
    """What a door says about an error: the same words in text and JSON."""

    slug: str
    what: str
    where: str | None
    hint: str | None
    exit_code: int
    extra: dict[str, Any] = field(default_factory=dict)

    def as_text(self) -> str:
        """``error[slug]: what``, then ``  --> where`` and ``  hint: ...``."""
        lines = [f"error[{self.slug}]: {self.what}"]
        if self.where:
            lines.append(f"  --> {self.where}")
        if self.extra.get("pruned"):
            counts = sorted(self.extra["pruned"].items(), key=lambda item: (-item[1], item[0]))
            lines.append("  pruned: " + " · ".join(f"{reason} {count:,}" for reason, count in counts))
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)

    def as_json(self) -> str:
        """``{"error": {slug, what, where, hint, exit_code, ...}}``."""
        head = {"slug": self.slug, "what": self.what, "where": self.where, "hint": self.hint}
        return json.dumps({"error": {**head, "exit_code": self.exit_code, **self.extra}}, indent=2)


def failure_of(
    error: BaseException, argv: Sequence[str] = (), whole_tree: Callable[[], typer.Typer] | None = None
) -> Failure:
    """The failure that an exception stands for; anything unknown is our bug (and leaves a report file).

    ``whole_tree`` builds every command, where the one that failed was built alone.
    """
    if isinstance(error, MeshwrightError):
        return _of_known_error(error)
    if isinstance(error, TyperException):
        return _of_usage_error(error, whole_tree)
    if isinstance(error, Interrupted):
        return Failure("interrupted", str(error), None, error.hint, 130)
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return Failure("interrupted", "interrupted; nothing was written", None, None, 130)
    if isinstance(error, OSError) and error.errno is not None:
        where = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else None
        hint = "free some space, or choose another path or permissions"
        return Failure("file-unusable", error.strerror or str(error), where or "file system", hint, 2)
    return _of_bug(error, argv)


def report(failure: Failure, *, as_json: bool) -> None:
    """Write the failure to stderr, whatever state stderr is in."""
    try:
        sys.stderr.write((failure.as_json() if as_json else failure.as_text()) + "\n")
        sys.stderr.flush()
    except (BrokenPipeError, ValueError):
        pass


def wants_json(argv: Sequence[str]) -> bool:
    """Did the command line ask for JSON, even where the rest of it cannot be parsed?"""
    return any(
        word in {"-ojson", "-o=json", "--output=json"} or (word in {"-o", "--output"} and value == "json")
        for word, value in zip(argv, [*argv[1:], ""], strict=False)
    )


def _of_known_error(error: MeshwrightError) -> Failure:
    extra: dict[str, Any] = {}
    if isinstance(error, NoFeasiblePlan):
        extra = {"binding": error.binding, "relaxations": list(error.relaxations), "pruned": dict(error.pruned)}
    return Failure(error.slug, error.what, error.where, error.hint, error.exit_code, extra)


def _of_usage_error(error: TyperException, whole_tree: Callable[[], typer.Typer] | None) -> Failure:
    """A command line that Typer could not parse, with the nearest right spelling."""
    from planner.strategy.spelling import did_you_mean

    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "meshwright"
    hint = f"see {command} --help"
    what = error.format_message().rstrip(".")
    where = command
    parameter = getattr(error, "param", None)
    option = getattr(error, "option_name", None)
    if option is not None:
        where = f"{command} {option}"
        what = what.split(" (Possible options")[0]
        if option == SERVER_FLAG:
            return Failure("usage", f"{command} runs on this machine only", where, _served_hint(context, whole_tree), 2)
        known = [name for each in context.command.params for name in each.opts] if context is not None else []
        if option in RENAMED and RENAMED[option] in known:
            now = RENAMED[option]
            hint = f"write {now} V"
            if now == "--backend":
                hint = f"write {now} NAME or {now} NAME==RELEASE; `meshwright backends list` shows the names"
            return Failure("usage", f"{option} is {now} now", where, hint, 2)
        hint = did_you_mean(option, known, fallback=hint)
    elif parameter is not None and parameter.opts:
        name = parameter.opts[0]
        where = f"{command} {name}" if name.startswith("-") else f"{command} {name.upper()}"
        what = re.sub(r"^Invalid value for [^:]*: ", "", what).removeprefix("Value error, ")
        what = PLAIN_WORDS.get(what, what)
        hint = _choice_hint(error, hint)
    elif "Did you mean" in what:
        what, _, suggestion = what.partition(". Did you mean ")
        hint = f"did you mean {suggestion.rstrip('?')}?"
    return Failure("usage", what, where, hint, 2)


def _served_hint(context: Any, whole_tree: Callable[[], typer.Typer] | None) -> str:
    """The commands that a service answers: those that know the flag."""
    served: list[str] = []
    root = context.find_root().command if whole_tree is None else typer.main.get_command(whole_tree())
    waiting: list[tuple[str, Any]] = [("", root)]
    while waiting:
        path, command = waiting.pop(0)
        waiting[:0] = [(f"{path} {name}".strip(), each) for name, each in getattr(command, "commands", {}).items()]
        if any(SERVER_FLAG in parameter.opts for parameter in command.params):
            served.append(path)
    return f"a service answers: {', '.join(served)}"


def _choice_hint(error: TyperException, fallback: str) -> str:
    """The nearest choice for a value like ``'jsn' is not one of 'table', 'json', 'yaml'``."""
    from planner.strategy.spelling import did_you_mean

    match = re.search(r"'([^']*)' is not one of (.*)", error.format_message())
    if match is None:
        return fallback
    return did_you_mean(match[1], re.findall(r"'([^']*)'", match[2]), fallback=fallback)


def _of_bug(error: BaseException, argv: Sequence[str]) -> Failure:
    """Our own mistake: one line, and a file with everything that a bug report needs."""
    what = f"unexpected {type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no message'}"
    bundle = _write_bundle(error, argv)
    hint = f"this is a bug in Meshwright; please report it with {bundle}" if bundle else "this is a bug in Meshwright"
    return Failure("internal", what, None, f"{hint} ({DEBUG_VARIABLE}=1 shows the traceback)", 1)


def _write_bundle(error: BaseException, argv: Sequence[str]) -> Path | None:
    """Traceback, command line and versions in a temporary file; None when nothing can be written."""
    from planner.version import __version__

    lines = [
        f"meshwright {__version__}, Python {sys.version}",
        f"command line: {list(argv)!r}",
        "".join(traceback.format_exception(error)),
    ]
    try:
        descriptor, name = tempfile.mkstemp(prefix="meshwright-bug-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write("\n".join(lines))
    except OSError:
        return None
    return Path(name)
