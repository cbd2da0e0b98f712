"""Follows the commands of a launch script without running any, and collects what it would launch.

Known: assignments, arrays, functions, loops, ``case``, tests, ``shift``, ``set --``, ``eval``, ``source``, ``read``
from a here-document, ``bash -c``, scripts that scripts start.  A condition that the text does not decide is followed
both ways: what both ways agree on is kept, arguments that only one way adds are left out and listed, a variable that
the ways set differently is unknown.  A way that ends the script is taken as an error message and not followed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from planner.model.shell.arithmetic import ArithmeticUnknownError
from planner.model.shell.branches import merged
from planner.model.shell.commands import follow_simple
from planner.model.shell.conditions import Condition
from planner.model.shell.outcome import Command, Stopped, TooLongError
from planner.model.shell.parser import parse
from planner.model.shell.patterns import matches
from planner.model.shell.scope import UNKNOWN, Record, Scope, Undecided, Value, unknown
from planner.model.shell.tree import (
    Body,
    Case,
    Chain,
    For,
    Function,
    Group,
    If,
    Node,
    Pipeline,
    ShellSyntaxError,
    Simple,
    Sum,
    Test,
    While,
)
from planner.model.shell.words import Words

MAX_STEPS = 50_000
_DEEPEST = 12
Opener = Callable[[str], str | None]
"""The text of a file that a script sources or starts; None where it cannot be had."""


@dataclass(slots=True)
class Interpreter:
    """One reading of one script."""

    opener: Opener = lambda _: None
    commands: list[Command] = field(default_factory=list)
    stopped_at: int | None = None
    """Line of the ``exit`` that ended the script."""
    undecided_depth: int = 0
    depth: int = 0
    printed: list[str] | None = None
    """Output of ``echo`` while a command substitution is followed."""

    def run(self, text: str, scope: Scope) -> None:
        """Follow a whole script.  Raises ShellSyntaxError."""
        body = parse(text)
        try:
            self.body(body, scope)
        except Stopped as stop:
            if stop.word == "exit":
                self.stopped_at = scope.record.line

    def all_words(self, scope: Scope) -> tuple[str, ...]:
        """The words of all commands, or those of the variables of a text that only fills variables."""
        words = tuple(word for command in self.commands for word in command.words)
        if any(word.startswith("--") for word in words):
            return words
        return tuple(part for name in scope.values for value in scope.elements(name) or () for part in value.split())

    def body(self, nodes: Body, scope: Scope) -> bool | None:
        """Follow commands in order; whether the last one succeeded."""
        status: bool | None = True
        for node in nodes:
            status = self.node(node, scope)
        return status

    def node(self, node: Node, scope: Scope) -> bool | None:  # noqa: PLR0911, PLR0912  # one return a kind
        """Follow one command; whether it succeeded, None where that is not known."""
        scope.record.steps += 1
        if scope.record.steps > MAX_STEPS or self.depth > 200:
            raise TooLongError
        match node:
            case Simple():
                scope.record.line = node.line
                return follow_simple(self, node, scope)
            case If():
                return self._if(node, scope)
            case Chain():
                return self._chain(node, scope)
            case Pipeline():
                return self._pipeline(node, scope)
            case For():
                return self._for(node, scope)
            case While():
                return self._while(node, scope)
            case Case():
                return self._case(node, scope)
            case Group():
                return self.body(node.body, scope.fork() if node.apart else scope)
            case Function():
                scope.functions[node.name] = node.body
                return True
            case Test():
                scope.record.line = node.line
                return self.test(node.words, scope, double=True)
            case Sum():
                try:
                    return self.words(scope).sum(node.text) != 0
                except ArithmeticUnknownError:
                    return None

    def words(self, scope: Scope, *, empty: bool = False) -> Words:
        """Expansion in a scope."""
        return Words(scope, self.output, empty_where_unset=empty)

    def test(self, raw: Sequence[str], scope: Scope, *, double: bool) -> bool | None:
        """A test's answer."""

        def exists(path: str) -> bool | None:
            return True if posixpath.normpath(path) in scope.record.files else None

        return Condition(raw, self.words(scope), self.words(scope, empty=True), exists).holds(double=double)

    def output(self, command: str, scope: Scope) -> str | None:
        """What a command substitution prints; None where the text does not say it."""
        self.depth += 1
        try:
            if self.depth > _DEEPEST:
                return None
            inner = Interpreter(self.opener, printed=[], depth=self.depth)
            inner.body(parse(command), scope.fork())
            return None if inner.commands or inner.printed is None else "".join(inner.printed)
        except Stopped:
            return None
        except ShellSyntaxError:
            return None
        finally:
            self.depth -= 1

    def either(self, ways: Sequence[Callable[[Scope], object]], scope: Scope, undecided: Undecided) -> None:
        """Follow every way apart; keep what they agree on."""
        ends: list[Scope] = []
        first = len(self.commands)
        self.undecided_depth += 1
        stop: Stopped | None = None
        try:
            for way in ways:
                apart = scope.fork()
                try:
                    way(apart)
                except Stopped as caught:
                    stop = caught
                    if caught.word == "exit":
                        continue
                ends.append(apart)
        finally:
            self.undecided_depth -= 1
        if not ends and stop is not None:
            raise stop
        launches = any(command.conditional for command in self.commands[first:])
        differing, left_out = merged(scope, ends)
        if differing or left_out or (launches and len(ends) > 1):
            scope.record.undecided.append((undecided, frozenset(differing), tuple(left_out)))

    def _if(self, node: If, scope: Scope) -> bool | None:
        for index, (condition, body) in enumerate(node.branches):
            scope.record.line = node.line
            holds = self.body(condition, scope)
            if holds:
                return self.body(body, scope)
            if holds is None:
                rest = If(node.branches[index + 1 :], node.otherwise, node.line)
                self.either(
                    [partial(self.body, body), partial(self._if, rest)],
                    scope,
                    undecided_by("if", condition, scope, node.line),
                )
                return None
        return self.body(node.otherwise, scope) if node.otherwise is not None else True

    def _chain(self, node: Chain, scope: Scope) -> bool | None:
        status = self.node(node.first, scope)
        before: Node = node.first
        for operator, part in node.rest:
            wanted = operator == "&&"
            if status is None:
                line = scope.record.line
                self.either(
                    [partial(self.node, part), lambda _: None],
                    scope,
                    undecided_by(operator, (before,), scope, line),
                )
            elif status == wanted:
                status = self.node(part, scope)
            before = part
        return status

    def _pipeline(self, node: Pipeline, scope: Scope) -> bool | None:
        if len(node.commands) == 1:
            status = self.node(node.commands[0], scope)
            return None if status is None else not status
        if self.printed is not None:
            self.printed = None  # a filter's output is not known
            return None
        for command in node.commands:
            apart = scope.fork()
            self.node(command, apart)
        return None

    def _for(self, node: For, scope: Scope) -> bool | None:
        if node.steps is not None:
            return self._counted(node, scope)
        if node.words is None:
            values: list[str] = list(scope.arguments or ())
        else:
            values = [field for raw in node.words for field in self.words(scope).fields(raw)]
        values = [each for value in values for each in braces(value)]
        for value in values:
            scope.store(node.name, value if UNKNOWN not in value else unknown(f"${node.name}"))
            if not self._turn(node.body, scope):
                break
        return True

    def _counted(self, node: For, scope: Scope) -> bool | None:
        start, condition, step = node.steps or ("", "", "")
        try:
            self.words(scope).sum(start)
            while not condition.strip() or self.words(scope).sum(condition):
                if not self._turn(node.body, scope):
                    break
                self.words(scope).sum(step)
        except ArithmeticUnknownError:
            undecided = Undecided(node.line, f"for (({start};{condition};{step}))", say_of((condition,), scope))
            self.either([lambda each: self._turn(node.body, each), lambda _: None], scope, undecided)
        return True

    def _turn(self, body: Body, scope: Scope) -> bool:
        """One turn of a loop; whether another may follow."""
        scope.record.steps += 1
        if scope.record.steps > MAX_STEPS:
            raise TooLongError
        try:
            self.body(body, scope)
        except Stopped as stop:
            if stop.word == "break":
                return False
            if stop.word != "continue":
                raise
        return True

    def _while(self, node: While, scope: Scope) -> bool | None:
        while True:
            holds = self.body(node.condition, scope)
            if holds is None:
                undecided = undecided_by("while", node.condition, scope, node.line)
                self.either([lambda each: self._turn(node.body, each), lambda _: None], scope, undecided)
                return None
            if holds == node.negated or not self._turn(node.body, scope):
                return True

    def _case(self, node: Case, scope: Scope) -> bool | None:
        words = self.words(scope)
        subject = words.text(node.subject)
        if UNKNOWN in subject:
            ways: list[Callable[[Scope], object]] = [partial(self.body, body) for _, body in node.arms]
            undecided = Undecided(node.line, f"case {node.subject} in", say_of((node.subject,), scope))
            self.either([*ways, lambda _: None], scope, undecided)
            return None
        for patterns, body in node.arms:
            if any(matches(subject, words.text(pattern), pattern) for pattern in patterns):
                return self.body(body, scope)
        return True


def undecided_by(word: str, condition: Body, scope: Scope, line: int) -> Undecided:
    """The place, its condition as written, and what would decide it."""
    raw = [text for node in condition for text in raw_words(node)]
    return Undecided(line, f"{word} {' '.join(raw)}"[:120], say_of(raw, scope))


def raw_words(node: Node) -> tuple[str, ...]:
    """A condition's words as they are written."""
    match node:
        case Simple():
            return node.words
        case Test():
            return ("[[", *node.words, "]]")
        case Sum():
            return (f"(({node.text}))",)
        case Pipeline():
            return tuple(text for each in node.commands for text in raw_words(each))
        case Chain():
            return (*raw_words(node.first), *(text for sign, each in node.rest for text in (sign, *raw_words(each))))
        case _:
            return ()


def say_of(raw: Sequence[str], scope: Scope) -> str:
    """``--set NAME=VALUE`` for the variables that are not known in some raw words."""
    names = re.findall(r"\$\{?([A-Za-z_]\w*|\d+)", " ".join(raw))
    known = {name for name in names if name.isidentifier() and UNKNOWN not in (scope.text(name) or UNKNOWN)}
    wanted = [name for name in dict.fromkeys(names) if name not in known]
    variables = [f"--set {name}=VALUE" for name in wanted if name.isidentifier()]
    if any(name.isdigit() for name in wanted):
        variables.append("the script's own arguments after --")
    return " ".join(variables) or "a text without this condition"


def braces(text: str) -> list[str]:
    """``{1..4}`` and ``a{b,c}`` as the words that they stand for."""
    match = re.fullmatch(r"([^{}]*)\{(-?\d{1,6})\.\.(-?\d{1,6})\}([^{}]*)", text)
    if match is not None:
        first, last = int(match[2]), int(match[3])
        step = 1 if last >= first else -1
        return [f"{match[1]}{number}{match[4]}" for number in range(first, last + step, step)][:10_000]
    match = re.fullmatch(r"([^{}]*)\{([^{}]*,[^{}]*)\}([^{}]*)", text)
    return [f"{match[1]}{part}{match[3]}" for part in match[2].split(",")] if match is not None else [text]


def started(values: Mapping[str, Value], arguments: Sequence[str] | None, script: str) -> Scope:
    """The scope in which a script begins."""
    return Scope(dict(values), None if arguments is None else tuple(arguments), Record(), script)
