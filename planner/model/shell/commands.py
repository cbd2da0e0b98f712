"""What single commands of a script do to its variables; every other command is collected as it would run."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, cast

from planner.model.shell.arithmetic import ArithmeticUnknownError
from planner.model.shell.array import array_of, stored_element
from planner.model.shell.inputs import change_folder, file_text, folder, getopts, here_text, mapfile, read
from planner.model.shell.outcome import Command, Stopped
from planner.model.shell.parser import parse
from planner.model.shell.scope import UNKNOWN, Scope, Undecided, plain, unknown
from planner.model.shell.tree import Node, Simple
from planner.model.shell.words import shown

if TYPE_CHECKING:
    from planner.model.shell.interpreter import Interpreter

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[([^\]]*)\])?(\+?)=(.*)", re.DOTALL)
_DECLARE = frozenset({"export", "declare", "local", "readonly", "typeset"})
_SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
_QUIET = frozenset({"mkdir", "pushd", "popd", "trap", "ulimit", "umask", "wait", "clear", "sleep", "chmod", "touch"})
_SCRIPT = re.compile(r".*\.(?:sh|bash|sbatch|slurm)\Z")


def follow_simple(run: Interpreter, node: Simple, scope: Scope) -> bool | None:
    """Follow assignments and one command; whether it succeeded, None where that is not known."""
    place = 0
    # `NAME=value command` sets the variable for that command alone; here it stays, which a launch does not notice.
    while place < len(node.words) and (match := _ASSIGNMENT.fullmatch(node.words[place])) is not None:
        assign(run, scope, match)
        place += 1
    raw = node.words[place:]
    if not raw:
        return True
    name = raw[0]
    if name in ("[", "test"):
        inside = list(raw[1:-1] if name == "[" and raw[-1] == "]" else raw[1:])
        return run.test(inside, scope, double=False)
    if name in _DECLARE:
        return _declare(run, scope, raw)
    words = [field for each in raw for field in run.words(scope).fields(each)]
    if not words:
        return True
    if words[0] in scope.functions:
        return _call(run, scope, words)
    known = _BUILT_IN.get(words[0])
    if known is not None:
        return known(run, node, scope, words)
    return _outside(run, node, scope, words)


def assign(run: Interpreter, scope: Scope, match: re.Match[str]) -> None:
    """``NAME=value``, ``NAME+=value``, ``NAME=(...)``, ``NAME[key]=value``."""
    name, index, adds, raw = match.group(1), match.group(2), bool(match.group(3)), match.group(4)
    words = run.words(scope)
    if index is not None:
        stored_element(words, name, index, words.text(raw), adds=adds)
        return
    if raw.startswith("(") and raw.endswith(")"):
        value = array_of(words, raw[1:-1], scope.values.get(name) if adds else None, is_new=not adds)
        scope.store(name, value)
        return
    text = words.text(raw)
    held = scope.values.get(name)
    if adds and isinstance(held, tuple):
        scope.store(name, (held[0] + text, *held[1:]) if held else (text,))
    else:
        scope.store(name, (scope.text(name) or "") + text if adds else text)


def _declare(run: Interpreter, scope: Scope, raw: Sequence[str]) -> bool:
    options = "".join(each[1:] for each in raw[1:] if each.startswith("-"))
    for each in raw[1:]:
        if each.startswith("-"):
            continue
        match = _ASSIGNMENT.fullmatch(each)
        name = match.group(1) if match is not None else each
        if raw[0] in ("local", "declare", "typeset") and scope.saved:
            scope.saved[-1].setdefault(name, scope.values.get(name))
        if "A" in options and name.isidentifier() and not hasattr(scope.values.get(name), "keys"):
            scope.values[name] = {}
        if match is not None:
            assign(run, scope, match)
        elif "A" not in options and not name.isidentifier():
            for field in run.words(scope).fields(each):
                if (pair := _ASSIGNMENT.fullmatch(field)) is not None:
                    scope.store(pair.group(1), pair.group(4))
    return True


def _call(run: Interpreter, scope: Scope, words: Sequence[str]) -> bool | None:

    outer = scope.arguments
    scope.arguments = tuple(words[1:])
    scope.saved.append({})
    run.depth += 1
    try:
        return run.node(cast("Node", scope.functions[words[0]]), scope)
    except Stopped as stop:
        if stop.word != "return":
            raise
        return None
    finally:
        run.depth -= 1
        for name, value in scope.saved.pop().items():
            if value is None:
                scope.values.pop(name, None)
            else:
                scope.values[name] = value
        scope.arguments = outer


def _outside(run: Interpreter, node: Simple, scope: Scope, words: list[str]) -> bool | None:
    """A command that the script would run: scripts and ``bash -c`` are followed, all others are collected."""
    inner = _inner_script(run, node, scope, words)
    if inner is not None:
        before, text, arguments, source = inner
        first = len(run.commands)
        apart = scope.fork()
        apart.arguments, apart.script = tuple(arguments), source or apart.script
        run.depth += 1
        line = scope.record.line
        run.run(text, apart)
        run.depth -= 1
        run.commands[first:] = [
            replace(each, words=(*before, *each.words), line=each.line if source else line)
            for each in run.commands[first:]
        ]
        return None
    if words[0] in _QUIET:
        return True
    if run.printed is not None:
        run.printed = None

    run.commands.append(Command(tuple(shown(words)), node.line, conditional=run.undecided_depth > 0))
    return None


def _inner_script(
    run: Interpreter, node: Simple, scope: Scope, words: Sequence[str]
) -> tuple[list[str], str, list[str], str] | None:
    """Words before, the text of a script that the command follows, its arguments, its file; None: there is none."""
    if run.depth > 8:
        return None
    for place, word in enumerate(words):
        base = PurePosixPath(word).name
        if base in _SHELLS:
            rest = list(words[place + 1 :])
            options = 0
            while options < len(rest) and rest[options].startswith(("-", "+")):
                if "c" in rest[options] and not rest[options].startswith("--") and options + 1 < len(rest):
                    return list(words[:place]), rest[options + 1], rest[options + 3 :], ""
                options += 1
            if not rest[options:] and node.here is not None:
                return list(words[:place]), here_text(run, node, scope), [], ""
            if rest[options:] and (text := file_text(run, scope, rest[options])) is not None:
                return list(words[:place]), text, rest[options + 1 :], rest[options]
            return None
        if base == "sbatch" and node.here is not None:
            return [], here_text(run, node, scope), [], ""
        if _SCRIPT.match(word) and (text := file_text(run, scope, word)) is not None:
            return list(words[:place]), text, list(words[place + 1 :]), word
    return None


def _echo(run: Interpreter, node: Simple, scope: Scope, words: list[str]) -> bool:
    rest = words[1:]
    ends = "\n"
    while rest and re.fullmatch(r"-[neE]+", rest[0]):
        ends = "" if "n" in rest[0] else ends
        rest = rest[1:]
    _print(run, node, scope, " ".join(rest) + ends, words)
    return True


def _printf(run: Interpreter, node: Simple, scope: Scope, words: list[str]) -> bool:
    rest = words[1:]
    target = ""
    if len(rest) > 2 and rest[0] == "-v":
        target, rest = rest[1], rest[2:]
    text = rest[0].replace("\\n", "\n") if rest else ""
    for value in rest[1:]:
        text = re.sub(r"%-?\d*[sdqf]", value.replace("\\", r"\\"), text, count=1)
    if target.isidentifier():
        scope.store(target, text)
    else:
        _print(run, node, scope, text, words)
    return True


def _print(run: Interpreter, node: Simple, scope: Scope, text: str, words: Sequence[str]) -> None:

    if node.output is not None:
        _written(run, node, scope, text)
    elif run.printed is not None:
        run.printed.append(text)
    else:
        run.commands.append(Command(tuple(shown(list(words))), node.line, conditional=run.undecided_depth > 0))


def _written(run: Interpreter, node: Simple, scope: Scope, text: str) -> None:
    path = run.words(scope).text(node.output or "")
    if UNKNOWN not in path:
        scope.record.files[posixpath.normpath(path)] = text


def _cat(run: Interpreter, node: Simple, scope: Scope, words: list[str]) -> bool | None:
    text = here_text(run, node, scope) if node.here is not None else None
    if text is None and len(words) == 2:
        text = scope.record.files.get(posixpath.normpath(words[1]))
    if node.output is not None and text is not None:
        _written(run, node, scope, text)
    elif run.printed is not None:
        if text is None:
            run.printed = None
        else:
            run.printed.append(text)
    return True if text is not None else None


def _eval(run: Interpreter, node: Simple, scope: Scope, words: list[str]) -> bool | None:
    run.depth += 1
    if run.depth > 12:
        return None
    first = len(run.commands)
    try:
        return run.body(parse(" ".join(words[1:])), scope)
    finally:
        run.depth -= 1
        scope.record.line = node.line
        run.commands[first:] = [replace(each, line=node.line) for each in run.commands[first:]]


def _source(run: Interpreter, node: Simple, scope: Scope, words: list[str]) -> bool | None:
    text = file_text(run, scope, words[1]) if len(words) > 1 else None
    if text is None or run.depth > 8:
        path = plain(words[1]).replace(UNKNOWN, "") if len(words) > 1 else ""
        what = Undecided(node.line, f"source {path}", "the file beside the script, or --set for what it sets")
        scope.record.undecided.append((what, frozenset({"source"}), ()))
        return True
    outer = scope.arguments
    scope.arguments = tuple(words[2:]) if len(words) > 2 else outer
    run.depth += 1
    run.body(parse(text), scope)
    run.depth -= 1
    scope.arguments = outer
    return True


def _shift(_: Interpreter, node: Simple, scope: Scope, words: list[str]) -> bool:
    del node
    count = int(words[1]) if len(words) > 1 and words[1].isdigit() else 1
    if scope.arguments is None:
        return True
    if count <= len(scope.arguments):
        scope.arguments = scope.arguments[count:]
    return True


def _set(_: Interpreter, node: Simple, scope: Scope, words: list[str]) -> bool:
    del node
    if "--" in words:
        scope.arguments = tuple(words[words.index("--") + 1 :])
    return True


def _unset(_: Interpreter, node: Simple, scope: Scope, words: list[str]) -> bool:
    del node
    for name in words[1:]:
        scope.values.pop(name, None)
    return True


def _let(run: Interpreter, _: Simple, scope: Scope, words: list[str]) -> bool | None:
    result = 0
    for each in words[1:]:
        try:
            result = run.words(scope).sum(each)
        except ArithmeticUnknownError:
            name = re.match(r"[A-Za-z_]\w*", each)
            if name is not None:
                scope.store(name[0], unknown(f"${name[0]}"))
            return None
    return result != 0


def _paths(run: Interpreter, _: Simple, scope: Scope, words: list[str]) -> bool | None:
    del scope
    if run.printed is None or len(words) < 2:
        return None
    path = PurePosixPath(words[1])
    text = str(path.parent) if words[0] == "dirname" else path.name.removesuffix(words[2] if len(words) > 2 else "")
    run.printed.append(text)
    return True


def _numbers(run: Interpreter, _: Simple, scope: Scope, words: list[str]) -> bool | None:
    """``expr`` and ``seq``."""
    if run.printed is None:
        return None
    try:
        if words[0] == "expr":
            run.printed.append(str(run.words(scope).sum(" ".join(words[1:]))))
        else:
            first, last = (1, int(words[1])) if len(words) == 2 else (int(words[1]), int(words[-1]))
            step = int(words[2]) if len(words) == 4 else 1
            run.printed.append("\n".join(str(each) for each in range(first, last + 1, step)[:10_000]))
    except (ArithmeticUnknownError, ValueError, IndexError):
        run.printed = None
    return True


def _stop(run: Interpreter, node: Simple, scope: Scope, words: list[str]) -> bool:
    del run, scope, node

    raise Stopped(words[0])


def _exec(run: Interpreter, node: Simple, scope: Scope, words: list[str]) -> bool | None:
    return _outside(run, node, scope, words[1:]) if len(words) > 1 else True


_BUILT_IN: dict[str, Callable[[Interpreter, Simple, Scope, list[str]], bool | None]] = {
    "echo": _echo, "printf": _printf, "cat": _cat, "eval": _eval, "source": _source, ".": _source, "shift": _shift,
    "set": _set, "unset": _unset, "read": read, "let": _let, "exit": _stop, "return": _stop, "break": _stop,
    "continue": _stop, "true": lambda *_: True, "exec": _exec, "dirname": _paths, "basename": _paths, "expr": _numbers,
    "seq": _numbers, "false": lambda *_: False, "getopts": getopts, "mapfile": mapfile, "readarray": mapfile,
    "cd": change_folder, "pwd": folder,
}  # fmt: skip
