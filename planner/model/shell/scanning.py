"""Where a shell word, a quoted text or an expansion ends.  Positions into one text; raises ``ShellSyntaxError``."""

from __future__ import annotations

from planner.model.shell.tree import ShellSyntaxError

META = frozenset(" \t\r\n;&|<>()")
_DEEPEST = 40
"""Levels of quotes and expansions inside each other; a script has a handful."""


def end_of_single(text: str, start: int) -> int:
    """Position after the ``'`` that closes the one at ``start``."""
    end = text.find("'", start + 1)
    if end < 0:
        raise _open(text, start, "the quote ' is not closed")
    return end + 1


def end_of_double(text: str, start: int, depth: int = 0) -> int:
    """Position after the ``"`` that closes the one at ``start``."""
    place = start + 1
    while place < len(text):
        sign = text[place]
        if sign == '"':
            return place + 1
        place = end_of_piece(text, place, depth) if sign in "\\$`" else place + 1
    raise _open(text, start, 'the quote " is not closed')


def end_of_piece(text: str, start: int, depth: int = 0) -> int:
    """Position after the escape, quote, expansion or plain sign at ``start``."""
    if depth > _DEEPEST:
        raise _open(text, start, "too many levels of quotes and expansions")
    sign, after = text[start], text[start + 1 : start + 2]
    if sign == "\\":
        return min(start + 2, len(text))
    if sign == "'":
        return end_of_single(text, start)
    if sign == '"':
        return end_of_double(text, start, depth + 1)
    if sign == "`":
        return _end_of_backtick(text, start)
    if sign == "$" and after == "(":
        return end_of_brackets(text, start + 1, "(", ")", depth + 1)
    if sign == "$" and after == "{":
        return end_of_brackets(text, start + 1, "{", "}", depth + 1)
    return start + 1


def end_of_brackets(text: str, start: int, opening: str, closing: str, depth: int = 0) -> int:
    """Position after the bracket that closes the one at ``start``; quotes and expansions inside are stepped over."""
    place, level = start, 0
    while place < len(text):
        sign = text[place]
        if sign == opening:
            level += 1
        elif sign == closing:
            level -= 1
            if level == 0:
                return place + 1
        if sign == "#" and opening == "(" and text[place - 1].isspace():
            place = end_of_line(text, place)
            continue
        place = end_of_piece(text, place, depth) if sign in "\\'\"$`" else place + 1
    raise _open(text, start, f"the bracket {opening} is not closed")


def end_of_line(text: str, start: int) -> int:
    """Position of the newline, or of the end."""
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def end_of_word(text: str, start: int) -> int:
    """Position after the word at ``start``.

    A bracket inside a word, or where an argument begins, belongs to the word: an array, or the pattern
    ``[0]*3+([1]*58)`` of a flag.
    """
    place = start
    while place < len(text):
        sign = text[place]
        if sign == "\\" and text[place + 1 : place + 2] == "\n":
            return place
        if sign == "(" or (sign in "<>" and text[place + 1 : place + 2] == "("):
            opened = place if sign == "(" else place + 1
            place = end_of_brackets(text, opened, "(", ")")
        elif sign in META:
            return place
        else:
            place = end_of_piece(text, place)
    return place


def _end_of_backtick(text: str, start: int) -> int:
    place = start + 1
    while place < len(text):
        if text[place] == "`":
            return place + 1
        place += 2 if text[place] == "\\" else 1
    raise _open(text, start, "the ` is not closed")


def _open(text: str, start: int, what: str) -> ShellSyntaxError:
    return ShellSyntaxError(what, text.count("\n", 0, start) + 1)
