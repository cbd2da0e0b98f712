"""The words that a pasted launch script passes on, with its own variables filled in.

Enough of the shell for launch scripts, and nothing is ever run: comments, line continuation, quotes, ``NAME=value``,
arrays ``NAME=(...)`` and ``NAME+=(...)``, ``$NAME``, ``${NAME}``, ``${NAME[@]}``, ``${NAME:-default}`` and integer
arithmetic ``$((A * B))``.  What cannot be known from the text alone (``$1``, command output, a variable that only
one branch of an ``if`` sets) becomes an ``UNKNOWN`` mark inside the word, so that the reader can name it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

UNKNOWN = "\x00"
"""Stands around the name of what the text does not say: ``\\0NAME\\0``."""

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_EXPANSION = re.compile(
    r"\$(?:\(\((?P<sum>[^()]*(?:\([^()]*\)[^()]*)*)\)\)"
    r"|\((?P<command>[^()]*(?:\([^()]*\)[^()]*)*)\)"
    r"|\{(?P<braced>[A-Za-z_]\w*|[0-9@*#])(?:\[[@*]\])?(?::?(?P<operator>[-=+])(?P<default>[^}]{0,500}))?\}"
    r"|\{(?P<odd>[^}]{0,500})\}"
    r"|(?P<plain>[A-Za-z_]\w*|[0-9@*#?!$]))"
)
_TOKEN = re.compile(
    r"(?P<comment>(?<![^\s;(])#[^\n]*)"
    r"|(?P<single>'[^']*')"
    r'|(?P<double>"(?:\\.|[^"\\])*")'
    r"|(?P<expansion>\$\(\((?:[^()]|\([^()]*\))*\)\)|\$\((?:[^()]|\([^()]*\))*\)|\$\{[^}]{0,500}\}|`[^`]*`"
    r"|\$[A-Za-z_]\w*|\$[0-9@*#?!$])"
    r"|(?P<escape>\\.)"
    r"|(?P<separator>[\n;]|&&|\|\||[|&])"
    r"|(?P<open>\()|(?P<close>\))"
    r"|(?P<space>[ \t\r]+)"
    r"|(?P<bare>[^\s'\"\\;&|()$`]+|\$|['\"`])",
    re.DOTALL,
)
_OPENING = frozenset({"if", "case", "for", "while", "until", "select"})
_CLOSING = frozenset({"fi", "esac", "done"})
_MAX_VALUE_LENGTH = 1_000_000
_KEPT_SPACE = "\x01"
_PREFIXES = frozenset({"then", "else", "do", "export", "local", "declare", "readonly"})
_MAX_WORDS = 20_000


@dataclass(slots=True)
class _Word:
    """A raw word: pieces of text, each with whether it splits after expansion."""

    pieces: list[tuple[str, str]] = field(default_factory=list)

    def raw(self) -> str:
        return "".join(text for text, _ in self.pieces)


@dataclass(slots=True)
class _Scope:
    """Variables so far; ``uncertain`` ones depend on a condition, ``skipped`` are words that only a condition adds."""

    values: dict[str, list[str]] = field(default_factory=dict)
    uncertain: set[str] = field(default_factory=set)
    skipped: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ScriptWords:
    """The words of a script, and those that only a condition would add."""

    words: tuple[str, ...]
    skipped: tuple[str, ...]


def script_words(text: str) -> ScriptWords:
    """All words of all commands of the script, expanded, in order.

    A text that only fills variables (a pasted ``MODEL_ARGS=( ... )``) yields the words of those variables.
    """
    scope = _Scope()
    words: list[str] = []
    depth = 0
    for statement in _statements(text.replace("\\\r\n", " ").replace("\\\n", " ")):
        first = statement[0].raw()
        depth = max(depth + (first in _OPENING) - (first in _CLOSING), 0)
        start = 1 if first in _PREFIXES else 0
        rest = _assign(statement[start:], scope, conditional=depth > 0)
        words += [each for word in rest for each in _expand(word, scope)]
        if len(words) > _MAX_WORDS:
            break
    if not any(word.startswith("--") for word in words):
        words = [word for value in scope.values.values() for each in value for word in each.split()]
    return ScriptWords(tuple(words), tuple(scope.skipped))


def _statements(text: str) -> Iterator[list[_Word]]:
    """Split into statements; the words between brackets belong to the word that opens them (arrays)."""
    statement: list[_Word] = []
    word = _Word()
    nesting = 0
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup or "", match.group()
        if nesting == 0 and kind in ("space", "separator", "comment"):
            if word.pieces:
                statement.append(word)
                word = _Word()
            if kind == "separator" and statement:
                yield statement
                statement = []
        elif kind != "comment":
            nesting = max(nesting + (kind == "open") - (kind == "close"), 0)
            word.pieces.append(_piece(kind, token))
    if word.pieces:
        statement.append(word)
    if statement:
        yield statement


def _piece(kind: str, token: str) -> tuple[str, str]:
    if kind in ("space", "separator"):
        return " ", "gap"
    if kind in ("single", "double"):
        return token[1:-1], "literal" if kind == "single" else "quoted"
    if kind == "escape":
        return token[1:], "literal"
    return token, kind if kind in ("open", "close") else "bare"


def _assign(statement: list[_Word], scope: _Scope, *, conditional: bool) -> list[_Word]:
    """Carry out the leading assignments of a statement; return what is left of it."""
    while statement:
        match = _ASSIGNMENT.fullmatch(statement[0].raw())
        pieces = statement[0].pieces
        if match is None or pieces[0][1] != "bare" or "=" not in pieces[0][0]:
            return statement
        name, adds = match.group(1), bool(match.group(2))
        value = _Word([(pieces[0][0].split("=", 1)[1], "bare"), *pieces[1:]])
        if any(kind == "open" for _, kind in pieces):
            new = _expand_array(value, scope)
        else:
            new = ["".join(_expand_text(text, kind, scope) for text, kind in value.pieces)]
        _store(scope, name, new, adds=adds, conditional=conditional)
        statement = statement[1:]
    return statement


def _store(scope: _Scope, name: str, new: list[str], *, adds: bool, conditional: bool) -> None:
    if sum(map(len, new)) > _MAX_VALUE_LENGTH:  # A=$A$A, forty times over
        new = [_unknown(f"${name}")]
    if adds and conditional:
        scope.skipped += new
    elif adds:
        scope.values[name] = [*scope.values.get(name, []), *new]
    else:
        if conditional and scope.values.get(name) != new:
            scope.uncertain.add(name)
        elif not conditional:
            scope.uncertain.discard(name)
        scope.values[name] = new


def _expand_array(word: _Word, scope: _Scope) -> list[str]:
    items: list[str] = []
    current = _Word()
    depth = 0
    for text, kind in [*word.pieces, ("", "gap")]:
        if kind in ("open", "close"):
            depth += 1 if kind == "open" else -1
            if depth > 1 or (kind == "close" and depth == 1):
                current.pieces.append((text, "literal"))
        elif kind == "gap":
            if current.raw():
                items += _expand(current, scope)
            current = _Word()
        else:
            current.pieces.append((text, kind))
    return items


def _expand(word: _Word, scope: _Scope) -> list[str]:
    """Fill in variables; unquoted ones split at spaces, and a whole array stays a list."""
    raw = word.raw()
    match = re.fullmatch(r"\$\{([A-Za-z_]\w*)\[[@*]\](?::?[-=+][^}]{0,500})?\}", raw)
    if match is not None and match.group(1) in scope.values and match.group(1) not in scope.uncertain:
        return list(scope.values[match.group(1)])
    text = "".join(
        _expand_text(piece, kind, scope).replace(" ", _KEPT_SPACE)
        if kind in ("literal", "quoted")
        else _expand_text(piece, kind, scope)
        for piece, kind in word.pieces
    )
    return [part.replace(_KEPT_SPACE, " ") for part in text.split()]


def _expand_text(text: str, kind: str, scope: _Scope) -> str:
    if kind in ("literal", "open", "close", "gap") or ("$" not in text and "`" not in text):
        return re.sub(r'\\(["\\$`])', r"\1", text) if kind == "quoted" else text
    if "`" in text:
        text = re.sub(r"`[^`]*`", _unknown("command output"), text)
    return _EXPANSION.sub(lambda match: _value(match, scope), text)


def _unknown(shown: str) -> str:
    """Mark for what the text does not decide; its spaces do not split the word."""
    return f"{UNKNOWN}{shown.replace(' ', _KEPT_SPACE)}{UNKNOWN}"


def _value(match: re.Match[str], scope: _Scope) -> str:
    if match.group("sum") is not None:
        return _arithmetic(match.group("sum"), scope)
    if match.group("command") is not None:
        return _unknown("command output")
    if match.group("odd") is not None:
        return _unknown(f"${{{match.group('odd')}}}")
    name = match.group("braced") or match.group("plain")
    operator, default = match.group("operator"), match.group("default") or ""
    if name in scope.uncertain:
        return _unknown(f"${name}")
    if operator == "+":
        return _expand_text(default, "bare", scope) if scope.values.get(name) else ""
    if scope.values.get(name):
        return " ".join(scope.values[name])
    if operator is not None:
        return _expand_text(default, "bare", scope)
    return "" if name in scope.values else _unknown(f"${name}")


def _arithmetic(expression: str, scope: _Scope) -> str:
    """Integer arithmetic with ``+ - * / % **`` and parentheses; anything else is unknown."""
    filled = _EXPANSION.sub(lambda match: _value(match, scope), expression)
    names = re.sub(r"[A-Za-z_]\w*", lambda match: " ".join(scope.values.get(match.group(), [match.group()])), filled)
    try:
        return str(_integer(ast.parse(names.strip(), mode="eval").body))
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError):
        return _unknown(f"$(({expression.strip()}))")


def _integer(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and abs(node.value) < 10**15:
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_integer(node.operand)
    if isinstance(node, ast.BinOp):
        left, right = _integer(node.left), _integer(node.right)
        match node.op:
            case ast.Add():
                return left + right
            case ast.Sub():
                return left - right
            case ast.Mult():
                return left * right
            case ast.Div() | ast.FloorDiv():
                return int(left / right)
            case ast.Mod():
                return left % right
            case _:
                pass
    raise ValueError("not integer arithmetic")
