"""What a script reads: files, here-documents, its options; and the folder in which it stands."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING

from planner.model.shell.scope import UNKNOWN, Scope, unknown
from planner.model.shell.tree import Simple

if TYPE_CHECKING:
    from planner.model.shell.interpreter import Interpreter


def file_text(run: Interpreter, scope: Scope, path: str) -> str | None:
    """The text of a file that the script wrote, or that stands beside it; None where it cannot be had."""
    if UNKNOWN in path or path == scope.script:
        return None
    return scope.record.files.get(posixpath.normpath(path)) or run.opener(path)


def here_text(run: Interpreter, node: Simple, scope: Scope) -> str:
    """The here-document or here-string of a command; empty where it has none."""
    if node.here is None:
        return ""
    if node.here.word is not None:
        return run.words(scope).text(node.here.word) + "\n"
    return node.here.text if node.here.literal else run.words(scope).body(node.here.text)


def read(run: Interpreter, node: Simple, scope: Scope, words: list[str]) -> bool:
    """``read``: the first line of a here-document, all of it with ``-d ''``."""
    names = [word for word in words[1:] if word.isidentifier()]
    whole = any(word.startswith("-") and "d" in word for word in words[1:])
    text = here_text(run, node, scope) if node.here is not None else None
    if text is None:
        for name in names:
            scope.store(name, unknown(f"${name}"))
    elif "-a" in words or any(re.fullmatch(r"-\w*a", word) for word in words):
        scope.store(names[-1], tuple(text.split()))
    elif names:
        line = text.strip() if whole else text.split("\n", 1)[0].strip()
        parts = line.split(None, len(names) - 1)
        for place, name in enumerate(names):
            scope.store(name, parts[place] if place < len(parts) else "")
    return True


def mapfile(run: Interpreter, node: Simple, scope: Scope, words: list[str]) -> bool:
    """``mapfile``, ``readarray``: the lines of a here-document as an array."""
    name = words[-1] if len(words) > 1 and words[-1].isidentifier() else "MAPFILE"
    if node.here is None:
        scope.store(name, unknown(f"${name}"))
    else:
        scope.store(name, tuple(here_text(run, node, scope).splitlines()))
    return True


def getopts(run: Interpreter, node: Simple, scope: Scope, words: list[str]) -> bool | None:
    """``getopts SPEC NAME``: the next option of the script's arguments; None where nothing is said of them."""
    del run, node
    if len(words) < 3 or scope.arguments is None:
        return None
    spec, name = words[1].removeprefix(":"), words[2]
    index = _number(scope.text("OPTIND"), 1)
    offset = _number(scope.text("GETOPTS_OFFSET"), 1)  # inside a word of several letters, which bash keeps to itself
    word = scope.arguments[index - 1] if index <= len(scope.arguments) else ""
    if not word.startswith("-") or word in ("-", "--"):
        scope.store("OPTIND", str(index + (word == "--")))
        scope.store(name, "?")
        return False
    letter, rest = word[offset], word[offset + 1 :]
    takes = f"{letter}:" in spec
    if takes:
        value = rest or (scope.arguments[index] if index < len(scope.arguments) else "")
        index, offset = index + (1 if rest else 2), 1
        scope.store("OPTARG", value)
    else:
        index, offset = (index, offset + 1) if rest else (index + 1, 1)
    scope.store(name, letter if letter in spec and letter != ":" else "?")
    scope.store("OPTIND", str(index))
    scope.store("GETOPTS_OFFSET", str(offset))
    return True


def change_folder(run: Interpreter, node: Simple, scope: Scope, words: list[str]) -> bool:
    """``cd``: where later paths begin."""
    del run, node
    path = next((word for word in words[1:] if not word.startswith("-")), "")
    if not path:
        scope.store("PWD", unknown("$HOME"))
    else:
        scope.store("PWD", posixpath.normpath(posixpath.join(scope.text("PWD") or "", path)))
    return True


def folder(run: Interpreter, node: Simple, scope: Scope, words: list[str]) -> bool | None:
    """``pwd``."""
    del node, words
    if run.printed is None:
        return True
    run.printed.append(scope.text("PWD") or unknown("$PWD"))
    return True


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and text.isdecimal() else default
