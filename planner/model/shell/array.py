"""Arrays: ``NAME=(a b)``, ``NAME=([key]=value)``, ``NAME[key]=value``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from planner.model.shell.arithmetic import ArithmeticUnknownError
from planner.model.shell.scanning import META, end_of_line, end_of_word
from planner.model.shell.scope import Value, unknown
from planner.model.shell.words import Words

_ELEMENT = re.compile(r"\[([^\]]*)\]=(.*)", re.DOTALL)


def array_of(words: Words, inside: str, held: Value | None, *, is_new: bool) -> Value:
    """The array of some raw elements, after those that it ``held``."""
    raw = _raw_elements(inside)
    keyed = [match for match in map(_ELEMENT.fullmatch, raw) if match is not None]
    if keyed and len(keyed) == len(raw):
        before = dict(held) if isinstance(held, Mapping) and not is_new else {}
        return {**before, **{words.text(match[1]): words.text(match[2]) for match in keyed}}
    start = (held,) if isinstance(held, str) else held if isinstance(held, tuple) else ()
    return (*start, *(field for each in raw for field in words.fields(each)))


def stored_element(words: Words, name: str, index: str, text: str, *, adds: bool) -> None:
    """Assign one element; of an associative array where it was declared or the key is a word."""
    scope = words.scope
    held = scope.values.get(name)
    if held is not None and not isinstance(held, (str, tuple)):
        key = words.text(index)
        scope.store(name, {**held, key: held.get(key, "") + text if adds else text})
        return
    try:
        place = words.sum(index)
    except ArithmeticUnknownError:
        scope.store(name, unknown(f"${name}"))
        return
    elements = list(scope.elements(name) or ())
    if 0 <= place < 1000:
        elements += [""] * (place + 1 - len(elements))
        elements[place] = elements[place] + text if adds else text
    scope.store(name, tuple(elements))


def _raw_elements(inside: str) -> list[str]:
    elements: list[str] = []
    place = 0
    while place < len(inside):
        sign = inside[place]
        if inside.startswith(("\\\n", "\\\r\n"), place):
            place = end_of_line(inside, place) + 1
        elif sign == "#" and (place == 0 or inside[place - 1] in META):
            place = end_of_line(inside, place)
        elif sign in META and sign != "(":
            place += 1
        else:
            end = end_of_word(inside, place)
            elements.append(inside[place:end])
            place = max(end, place + 1)
    return elements
