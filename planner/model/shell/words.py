"""Raw words of a script as the fields that a command gets: quotes, variables, arithmetic, command output."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from planner.model.shell.arithmetic import Arithmetic, ArithmeticUnknownError
from planner.model.shell.parameters import Parameter, parameter_of, transformed
from planner.model.shell.scanning import end_of_piece
from planner.model.shell.scope import KEPT_SPACE, UNKNOWN, Scope, plain, unknown

_SPACE = re.compile(r"[ \t\r\n]+")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?!$\-]")
_ESCAPED = frozenset('"\\$`\n')
_NOTHING = object()

Runner = Callable[[str, Scope], str | None]
"""The output of a command in a scope of its own; None where it is not known."""


class Words:
    """Expansion in one scope.  ``empty_where_unset``: a variable that is not set is empty, as in ``[ -z $X ]``."""

    def __init__(self, scope: Scope, run: Runner, *, empty_where_unset: bool = False) -> None:
        self.scope = scope
        self.run = run
        self.empty_where_unset = empty_where_unset

    def fields(self, raw: str) -> list[str]:
        """The fields of one raw word; none where an unquoted variable is empty."""
        done: list[str] = []
        current: str | None = None
        for kind, text in self._pieces(raw):
            if kind == "text":
                current = (current or "") + text
            elif kind == "next":  # an element of "${A[@]}" ends here
                done.append(current or "")
                current = None
            else:
                parts = _SPACE.split(text)
                for index, part in enumerate(parts):
                    if index and current is not None:
                        done.append(current)
                        current = None
                    if part:
                        current = (current or "") + part
        return done if current is None else [*done, current]

    def text(self, raw: str) -> str:
        """One raw word without splitting, as in an assignment."""
        return "".join(" " if kind == "next" else text for kind, text in self._pieces(raw))

    def body(self, raw: str) -> str:
        """The body of a here-document: variables, no quotes."""
        return "".join(" " if kind == "next" else text for kind, text in self._quoted(raw, keeps_quotes=True))

    def sum(self, expression: str) -> int:
        """An arithmetic expression, assignments carried out.  Raises ArithmeticUnknownError."""
        filled = self.text(expression.replace('"', ""))
        if UNKNOWN in filled:
            raise ArithmeticUnknownError(expression)
        return Arithmetic(filled, self._number, self.scope.store).value()

    def _number(self, name: str) -> str | None:
        value = self.scope.text(name)
        return None if value is None or UNKNOWN in value else value

    def _pieces(self, raw: str) -> Iterator[tuple[str, str]]:
        """``text`` stays whole, ``split`` splits at spaces, ``next`` begins a field."""
        place = 0
        while place < len(raw):
            sign = raw[place]
            if sign not in "\\'\"$`":
                end = place + 1
                while end < len(raw) and raw[end] not in "\\'\"$`":
                    end += 1
                yield "text", raw[place:end]
                place = end
                continue
            end = end_of_piece(raw, place)
            if raw.startswith("$'", place):
                end = end_of_piece(raw, place + 1)
                yield "text", raw[place + 2 : end - 1].replace("\\n", "\n").replace("\\t", "\t")
            elif sign == "'":
                yield "text", raw[place + 1 : end - 1]
            elif sign == '"':
                yield "text", ""
                yield from self._quoted(raw[place + 1 : end - 1])
            elif sign == "\\":
                yield "text", "" if raw[place + 1 : end] == "\n" else raw[place + 1 : end]
            elif sign == "$" and raw[place + 1 : place + 2] == '"':
                end = place + 1
            else:
                end = self._end(raw, place)
                yield from self._expansion(raw[place:end], quoted=False)
            place = end

    def _quoted(self, raw: str, *, keeps_quotes: bool = False) -> Iterator[tuple[str, str]]:
        place = 0
        while place < len(raw):
            sign = raw[place]
            if sign == "\\":
                escaped = raw[place + 1 : place + 2]
                known = escaped in _ESCAPED and not (keeps_quotes and escaped == '"')
                # A continued line separates: scripts put their arguments one a line.
                yield "text", (" " if escaped == "\n" else escaped) if known else raw[place : place + 2]
                place += 2
            elif sign in "$`":
                end = self._end(raw, place)
                yield from self._expansion(raw[place:end], quoted=True)
                place = end
            else:
                end = place + 1
                while end < len(raw) and raw[end] not in "\\$`":
                    end += 1
                yield "text", raw[place:end]
                place = end

    @staticmethod
    def _end(raw: str, place: int) -> int:
        if raw[place] == "`" or raw[place + 1 : place + 2] in ("(", "{"):
            return end_of_piece(raw, place)
        name = _NAME.match(raw, place + 1)
        return place + 1 if name is None else name.end()

    def _expansion(self, raw: str, *, quoted: bool) -> Iterator[tuple[str, str]]:
        kind = "text" if quoted else "split"
        if raw == "$":
            yield "text", raw
        elif raw.startswith("$((") and raw.endswith("))"):
            yield kind, self._arithmetic(raw[3:-2])
        elif raw.startswith(("$(", "`")):
            inner = raw[2:-1] if raw.startswith("$(") else re.sub(r"\\([$`\\])", r"\1", raw[1:-1])
            output = self.run(inner, self.scope)
            yield kind, unknown("command output") if output is None else output.rstrip("\n")
        else:
            parameter = parameter_of(raw[2:-1] if raw.startswith("${") else raw[1:])
            if parameter is None:
                yield kind, unknown(raw)
            else:
                yield from self._parameter(parameter, quoted=quoted)

    def _arithmetic(self, expression: str) -> str:
        try:
            return str(self.sum(expression))
        except ArithmeticUnknownError:
            return unknown(f"$(({expression.strip()}))")

    def _parameter(self, parameter: Parameter, *, quoted: bool) -> Iterator[tuple[str, str]]:
        elements, kind = self._elements(parameter), "text" if quoted else "split"
        if parameter.operator in ("-", ":-", "=", ":=", "+", ":+", "?", ":?"):
            elements = self._conditional(parameter, elements)
            if elements is None:
                # The default's own quotes hold; an unquoted one splits.
                pieces = self._quoted(parameter.operand) if quoted else self._pieces(parameter.operand)
                for piece, text in pieces:
                    yield (
                        (kind, text)
                        if piece == "text" and not quoted and "'" not in parameter.operand
                        else (
                            piece,
                            text,
                        )
                    )
                return
        elif elements is not None:
            operand = self.text(parameter.operand) if parameter.operator else ""
            elements = transformed(parameter, elements, operand)
        if elements is None:
            elements = ("",) if self._taken_as_unset(parameter) else (unknown(f"${parameter.name}"),)
        if parameter.key == "*" and quoted:
            separator = self.scope.text("IFS")
            yield kind, (separator[:1] if separator else " ").join(elements)
            return
        if parameter.key and not quoted:
            # An element stays whole although a shell would split it: a launch then sees `(127, 0)` as one value.
            elements = tuple(element.strip() for element in elements if element.strip())
            yield "split", " "
        for index, element in enumerate(elements):
            if index:
                yield ("next", "") if quoted or parameter.key else ("split", " ")
            yield ("text" if parameter.key else kind), element

    def _taken_as_unset(self, parameter: Parameter) -> bool:
        if parameter.name in ("@", "*"):
            self.scope.assume_unset(parameter.name)
            return True
        if self.empty_where_unset or parameter.name == "IFS" or parameter.name in self.scope.record.assigned:
            self.scope.assume_unset(parameter.name)
            return True
        return False

    def _conditional(self, parameter: Parameter, elements: tuple[str, ...] | None) -> tuple[str, ...] | None:
        """The elements, or None where the operand takes their place."""
        operator = parameter.operator
        is_set = elements is not None and (not operator.startswith(":") or any(elements))
        if not is_set and elements is None:
            self.scope.assume_unset(parameter.name)
        if operator.endswith("+"):
            return None if is_set else ()
        if is_set:
            return elements
        if operator.endswith("?"):
            return (unknown(f"${parameter.name}"),)
        if operator.endswith("=") and parameter.name.isidentifier():
            self.scope.store(parameter.name, self.text(parameter.operand))
        return None

    def _elements(self, parameter: Parameter) -> tuple[str, ...] | None:
        """The value before its operator; None where it is not set, or nothing is known of it."""
        name, scope = parameter.name, self.scope
        if parameter.indirect:
            target = scope.text(name)
            if target is None or not target.isidentifier():
                return None
            name = target
        if name in ("@", "*"):
            values: tuple[str, ...] | None = scope.arguments
            values = () if values is None and parameter.counts else values
        elif name.isdigit() or name == "#":
            text = scope.positional(name)
            if name == "#" and text is None:
                scope.assume_unset("#")
                text = "0"
            values = None if text is None else (text,)
        elif name == "?":
            values = ("0",)
        elif not name.isidentifier():
            values = None
        else:
            values = self._indexed(name, parameter.key)
        if parameter.keys:
            held = scope.values.get(name)
            return tuple(held) if isinstance(held, Mapping) else tuple(map(str, range(len(values or ()))))
        if parameter.counts and values is not None:
            many = parameter.key in ("@", "*") or name in ("@", "*")
            return (str(len(values)) if many else str(len(values[0]) if values else 0),)
        return values

    def _indexed(self, name: str, index: str) -> tuple[str, ...] | None:
        if index in ("@", "*"):
            return self.scope.elements(name)
        if not index:
            text = self.scope.text(name)
            return None if text is None else (text,)
        held = self.scope.values.get(name)
        if held is None:
            return None
        if not isinstance(held, (str, tuple)):
            key = self.text(index)
            return (held[key],) if key in held else (unknown(f"${{{name}[{plain(key)}]}}"),) if UNKNOWN in key else None
        try:
            place = self.sum(index)
        except ArithmeticUnknownError:
            return (unknown(f"${{{name}[{index}]}}"),)
        elements = self.scope.elements(name) or ()
        return (elements[place],) if -len(elements) <= place < len(elements) else None


def shown(words: list[str]) -> list[str]:
    """Fields with the spaces of their marks as spaces."""
    return [word.replace(KEPT_SPACE, " ") for word in words]
