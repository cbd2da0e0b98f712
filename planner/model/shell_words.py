"""The words that a pasted launch script passes on, with its own variables filled in.  Nothing is ever run."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from planner.model.shell.interpreter import Interpreter, started
from planner.model.shell.outcome import TooLongError
from planner.model.shell.scope import UNKNOWN
from planner.model.shell.tree import ShellSyntaxError

__all__ = ["UNKNOWN", "ScriptWords", "script_words"]


@dataclass(frozen=True, slots=True)
class ScriptWords:
    """The words of a script, and those that only a condition would add."""

    words: tuple[str, ...]
    skipped: tuple[str, ...]


def script_words(text: str) -> ScriptWords:
    """All words of all commands of the script, expanded, in order; of what cannot be read, up to there.

    A text that only fills variables (a pasted ``MODEL_ARGS=( ... )``) yields the words of those variables.
    """
    scope, run = started({}, None, "script.sh"), Interpreter()
    with contextlib.suppress(ShellSyntaxError, TooLongError, RecursionError):
        run.run(text, scope)
    words = run.all_words(scope)
    skipped = (word for _, _, left_out in scope.record.undecided for word in left_out)
    return ScriptWords(words, tuple(dict.fromkeys(skipped)))
