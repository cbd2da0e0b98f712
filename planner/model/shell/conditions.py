"""Tests of the shell: ``[ ... ]`` and ``[[ ... ]]``, true, false or undecided (None).

A test for emptiness takes a variable that is not set as empty; a comparison with what the text does not say is
undecided, as is every question about files.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence

from planner.model.shell.arithmetic import ArithmeticUnknownError
from planner.model.shell.scope import UNKNOWN
from planner.model.shell.words import Words

_NUMBERS: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}
_BINARY = frozenset({"=", "==", "!=", "=~", "<", ">", *_NUMBERS})
_FILES = frozenset({f"-{letter}" for letter in "abcdefghkprstuwxLOGSN"})


class Condition:
    """One test: raw words without its brackets.  ``double``: ``[[ ]]``, whose right sides are patterns."""

    def __init__(self, raw: Sequence[str], plain: Words, empty: Words, files: Callable[[str], bool | None]) -> None:
        self.raw = list(raw)
        self.place = 0
        self.plain = plain
        self.empty = empty
        self.files = files
        self.double = False

    def holds(self, *, double: bool) -> bool | None:
        """True, false, or None where the text does not decide it."""
        self.double = double
        if not self.raw:
            return False
        result = self._any()
        return result if self.place >= len(self.raw) else None

    def _peek(self, ahead: int = 0) -> str:
        place = self.place + ahead
        return self.raw[place] if place < len(self.raw) else ""

    def _any(self) -> bool | None:
        result = self._all()
        while self._peek() in ("||", "-o"):
            self.place += 1
            other = self._all()
            result = True if result or other else None if result is None or other is None else False
        return result

    def _all(self) -> bool | None:
        result = self._one()
        while self._peek() in ("&&", "-a"):
            self.place += 1
            other = self._one()
            result = False if result is False or other is False else None if result is None or other is None else True
        return result

    def _one(self) -> bool | None:
        word = self._peek()
        if word == "!" and self.place + 1 < len(self.raw):
            self.place += 1
            result = self._one()
            return None if result is None else not result
        if word in ("(", "\\("):
            self.place += 1
            result = self._any()
            self.place += 1
            return result
        if self._peek(1) in _BINARY and self.place + 2 < len(self.raw):
            operator, right = self._peek(1), self._peek(2)
            self.place += 3
            return self._compared(word, operator, right)
        if word in ("-z", "-n", "-v") or word in _FILES:
            operand = self._peek(1)
            self.place += 2
            return self._about(word, operand)
        self.place += 1
        return self._is_full(word)

    def _about(self, operator: str, operand: str) -> bool | None:
        if operator == "-v":
            name = self.plain.text(operand)
            if self.plain.scope.elements(name) is None:
                self.plain.scope.assume_unset(name)
            return self.plain.scope.elements(name) is not None
        if operator in _FILES:
            text = self.plain.text(operand)
            return None if UNKNOWN in text or operator not in ("-e", "-f", "-s", "-r") else self.files(text)
        full = self._is_full(operand)
        return None if full is None else full == (operator == "-n")

    def _is_full(self, raw: str) -> bool | None:
        text = self.empty.text(raw)
        # Text beside what is not known is full; what is not known alone may be empty.
        return None if UNKNOWN in text and not "".join(text.split(UNKNOWN)[::2]).strip() else text != ""

    def _compared(self, left: str, operator: str, right: str) -> bool | None:
        if operator in _NUMBERS:
            try:
                return _NUMBERS[operator](self._number(left), self._number(right))
            except ArithmeticUnknownError:
                return None
        one, other = self.plain.text(left), self.plain.text(right)
        if UNKNOWN in one or UNKNOWN in other:
            one, other = self._with_empty(left, one), self._with_empty(right, other)
            if UNKNOWN in one or UNKNOWN in other:
                return None
        if operator in ("<", ">"):
            return one < other if operator == "<" else one > other
        if operator == "=~":
            try:
                return re.search(other, one) is not None if len(one) < 1000 and len(other) < 100 else None
            except re.error:
                return None
        is_pattern = self.double and not set(right) & set("'\"\\")
        same = fnmatch.fnmatchcase(one, other) if is_pattern else one == other
        return same if operator != "!=" else not same

    def _with_empty(self, raw: str, text: str) -> str:
        """``x$NAME`` against ``x``: the old test for emptiness."""
        partner = {"=", "==", "!="}
        is_old_test = raw.strip("'\"")[:1] in ("x", "X", "_") and self.raw[self.place - 2] in partner
        against = self.raw[self.place - 1].strip("'\"")
        return self.empty.text(raw) if is_old_test and len(against) <= 1 else text

    def _number(self, raw: str) -> int:
        text = self.plain.text(raw)
        if UNKNOWN in text or not text.strip():
            raise ArithmeticUnknownError(raw)
        return self.plain.sum(text)
