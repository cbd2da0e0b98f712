"""The inside of ``${...}``: name, index, operator and operand; and what the operators make of a text."""

from __future__ import annotations

import fnmatch
import re
from typing import NamedTuple

from planner.model.shell.scope import UNKNOWN, unknown

_PARAMETER = re.compile(
    r"(?P<before>[#!]?)(?P<name>[A-Za-z_]\w*|\d+|[@*#?$!\-])(?:\[(?P<index>[^\]]*)\])?"
    r"(?P<operator>:[-=+?]|[-=+?]|##?|%%?|//?[#%]?|\^\^?|,,?|@[A-Za-z]|:)?(?P<operand>.*)\Z",
    re.DOTALL,
)


class Parameter(NamedTuple):
    """``${#NAME}`` counts, ``${!NAME}`` is indirect, ``${!NAME[@]}`` gives keys."""

    name: str
    key: str = ""
    operator: str = ""
    operand: str = ""
    counts: bool = False
    indirect: bool = False
    keys: bool = False


def parameter_of(inside: str) -> Parameter | None:
    """Read the inside of ``${...}`` or the name after ``$``; None for what is no parameter."""
    if inside in ("#", "?", "$", "!", "@", "*", "-"):
        return Parameter(inside)
    match = _PARAMETER.match(inside)
    if match is None or (match["operand"] and not match["operator"]):
        return None
    index, before = match["index"] or "", match["before"]
    keys = before == "!" and index in ("@", "*")
    return Parameter(
        match["name"], index, match["operator"] or "", match["operand"], before == "#", before == "!" and not keys, keys
    )


def transformed(parameter: Parameter, elements: tuple[str, ...], operand: str) -> tuple[str, ...]:
    """Elements after the operator; ``${A[@]:1:2}`` cuts the list, the others change each element."""
    operator = parameter.operator
    if not operator:
        return elements
    if operator == ":":
        return _cut(parameter, elements, operand)
    return tuple(
        unknown(f"${{{parameter.name}{operator}}}")
        if UNKNOWN in element + operand
        else _changed(operator, element, operand)
        for element in elements
    )


def _changed(operator: str, text: str, operand: str) -> str:
    if operator[0] in "#%":
        return _without(text, operand, at_end=operator[0] == "%", longest=len(operator) == 2)
    if operator[0] == "/":
        return _replaced(operator, text, operand)
    if operator[0] == "^":
        return text.upper() if operator == "^^" else text[:1].upper() + text[1:]
    if operator[0] == ",":
        return text.lower() if operator == ",," else text[:1].lower() + text[1:]
    return text


def _without(text: str, pattern: str, *, at_end: bool, longest: bool) -> str:
    lengths = range(len(text), -1, -1) if longest else range(len(text) + 1)
    if len(text) > 10_000:
        return text
    for length in lengths:
        part = text[len(text) - length :] if at_end else text[:length]
        if fnmatch.fnmatchcase(part, pattern):
            return text[: len(text) - length] if at_end else text[length:]
    return text


def _replaced(operator: str, text: str, operand: str) -> str:
    pattern, _, new = operand.partition("/")
    if not pattern:
        return text
    # fnmatch.translate wraps the pattern as (?s:...)\Z; without its end it matches anywhere.
    expression = fnmatch.translate(pattern).replace("\\Z", "").replace("\\z", "")
    expression = {"#": rf"\A{expression}", "%": rf"{expression}\Z"}.get(operator[-1], expression)
    return re.sub(expression, lambda _: new, text, count=0 if operator.startswith("//") else 1)


def _cut(parameter: Parameter, elements: tuple[str, ...], operand: str) -> tuple[str, ...]:
    numbers = [part.strip() for part in operand.split(":")]
    if not all(re.fullmatch(r"\(?-?\d+\)?", part) for part in numbers) or len(numbers) > 2:
        return (unknown(f"${{{parameter.name}:{operand}}}"),)
    start = int(numbers[0].strip("()"))
    length = int(numbers[1].strip("()")) if len(numbers) == 2 else None
    if parameter.key in ("@", "*") or parameter.name in ("@", "*"):
        start -= parameter.name in ("@", "*") and start > 0
        return elements[start : None if length is None else start + length]
    return tuple(
        element[start : None if length is None else length if length < 0 else start + length] for element in elements
    )
