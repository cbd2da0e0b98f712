"""Megatron-LM's arguments as typed values.

Flags and defaults: Megatron-LM ``megatron/training/arguments.py`` (core 0.12 to 0.18).
"""

from __future__ import annotations

import ast
import difflib
import math
import re
from collections.abc import Iterable, Sequence

from planner.model.shell_words import UNKNOWN
from profiles.validation import Finding, require

MAX_INTEGER = 10**9
_TYPO_CUTOFF = 0.88
_NUMBER = re.compile(r"-?\d")


class MegatronFlags:
    """Typed access to ``--flag value`` words; collects all findings."""

    def __init__(self, words: Sequence[str], where: str) -> None:
        self.where = where
        self.findings: list[Finding] = []
        self.unknown_words: list[str] = []
        self._values: dict[str, list[str]] = {}
        self._asked: set[str] = set()
        self._collect(words)

    def _collect(self, words: Iterable[str]) -> None:
        flag: str | None = None
        for word in words:
            if word.startswith("--") and len(word) > 2:
                name, equals, value = word[2:].partition("=")
                flag = name.replace("_", "-")
                self._values[flag] = [value] if equals else []
            elif flag is not None and (not word.startswith("-") or _NUMBER.match(word)):
                self._values[flag].append(word)
            elif UNKNOWN in word:
                self.unknown_words.append(word.replace(UNKNOWN, ""))
            if flag is not None and UNKNOWN in word and len(self._values[flag]) > 1:
                # An unexpanded list of arguments after a complete flag, not that flag's value.
                self.unknown_words.append(self._values[flag].pop().replace(UNKNOWN, ""))

    @property
    def names(self) -> frozenset[str]:
        """Arguments that are given."""
        return frozenset(self._values)

    @property
    def asked(self) -> frozenset[str]:
        """Arguments that the reader has asked for, given or not."""
        return frozenset(self._asked)

    def values_of(self, flag: str) -> list[str]:
        """Values of an argument as they are written, without asking for it: lists of arguments are made of them."""
        return [value.replace(UNKNOWN, "") for value in self._values.get(flag, ())]

    def refuse(self, flag: str, what: str, hint: str) -> None:
        """Record one finding about ``--flag``."""
        self.findings.append(Finding(f"/--{flag}", f"--{flag} {what}", hint))

    def has(self, *flags: str) -> bool:
        """Whether one of the switches is given."""
        self._asked.update(flags)
        return any(flag in self._values for flag in flags)

    def text(self, *flags: str) -> str | None:
        """First value of the first of ``flags`` that is given, or None."""
        self._asked.update(flags)
        for flag in flags:
            if flag not in self._values:
                continue
            values = self._values[flag]
            if not values:
                self.refuse(flag, "has no value", f"write --{flag} VALUE")
                return None
            if UNKNOWN in values[0]:
                shown = values[0].replace(UNKNOWN, "")
                self.refuse(flag, f"is '{shown}', which the script does not decide", _how_to_say(shown))
                return None
            return values[0]
        return None

    def words(self, *flags: str) -> list[str]:
        """All values of the first of ``flags`` that is given."""
        self._asked.update(flags)
        return next((list(self._values[flag]) for flag in flags if flag in self._values), [])

    def integer(self, *flags: str, minimum: int = 1) -> int | None:
        """Integer value, or None where the flag is absent."""
        text = self.text(*flags)
        if text is None:
            return None
        try:
            value = int(text)
        except ValueError:
            self.refuse(flags[0], f"must be an integer, is '{text[:40]}'", "write a whole number")
            return None
        if not minimum <= value <= MAX_INTEGER:
            self.refuse(flags[0], f"must be {minimum} to {MAX_INTEGER:,}, is {text[:40]}", "write a possible number")
            return None
        return value

    def decided_integer(self, *flags: str) -> int | None:
        """Integer value, or None where it is absent or open; never a finding."""
        self._asked.update(flags)
        values = next((self._values[flag] for flag in flags if self._values.get(flag)), [""])
        return int(values[0]) if values[0].isdecimal() and len(values[0]) < 10 else None

    def required(self, flag: str, maximum: int = MAX_INTEGER) -> int:
        """Integer that the model cannot do without; 1 where it is missing or impossible (a finding is recorded)."""
        given = self.has(flag)
        value = self.integer(flag)
        if value is None and not given:
            self.refuse(flag, "is missing", f"add --{flag}{self._unknown_hint()}")
        if value is not None and value > maximum:
            self.refuse(flag, f"must be at most {maximum:,}, is {value:,}", "write a possible number")
            return 1
        return 1 if value is None else value

    def _unknown_hint(self) -> str:
        if not self.unknown_words:
            return ""
        return f" (perhaps it is in {', '.join(self.unknown_words[:4])}, which the script does not decide)"

    def number(self, *flags: str, default: float) -> float:
        """Positive number."""
        text = self.text(*flags)
        if text is None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or value <= 0:
            self.refuse(flags[0], f"must be a number above 0, is '{text[:40]}'", "write a possible number")
            return default
        return value

    def pattern(self, flag: str, num_layers: int) -> list[int] | None:
        """``N`` or a Python list expression such as ``[0]*3+[1]*58``; one entry a layer for a list, one for ``N``."""
        text = self.text(flag)
        if text is None:
            return None
        try:
            value = _list_expression(ast.parse(text.strip(), mode="eval").body, num_layers)
        except (SyntaxError, ValueError, RecursionError):
            self.refuse(flag, f"cannot be read: '{text[:60]}'", "write an integer or a list such as [0]*3+[1]*58")
            return None
        if isinstance(value, int):
            return [value]
        if len(value) != num_layers:
            self.refuse(flag, f"has {len(value)} entries for {num_layers} layers", "write one entry a layer")
            return None
        return value

    def finish(self) -> None:
        """Raise ``FindingsInvalid`` with every finding, misspelled model flags included."""
        for flag in self._values:
            if flag in self._asked:
                continue
            absent = [known for known in self._asked if known not in self._values]
            close = difflib.get_close_matches(flag, absent, n=1, cutoff=_TYPO_CUTOFF)
            if close and abs(len(close[0]) - len(flag)) <= 2:
                self.refuse(flag, "is not a known argument", f"did you mean '--{close[0]}'?")
        require(self.findings, self.where)


def _list_expression(node: ast.expr, num_layers: int) -> int | list[int]:
    """Value of integers, lists, ``+`` and ``*`` of them; never longer than a model may be."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.List):
        items = [_list_expression(item, num_layers) for item in node.elts]
        if all(isinstance(item, int) for item in items):
            return [item for item in items if isinstance(item, int)]
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
        left, right = _list_expression(node.left, num_layers), _list_expression(node.right, num_layers)
        if isinstance(node.op, ast.Add) and isinstance(left, list) and isinstance(right, list):
            return left + right
        if isinstance(node.op, ast.Mult) and isinstance(left, list) != isinstance(right, list):
            repeated: list[int] = left if isinstance(left, list) else right if isinstance(right, list) else []
            times = left if isinstance(left, int) else right if isinstance(right, int) else 0
            if len(repeated) * max(times, 0) <= 100 * num_layers:
                return repeated * times
    raise ValueError("not a list of integers")


def _how_to_say(shown: str) -> str:
    """How an open value is said: a script's own argument, a variable, or the value itself."""
    if re.fullmatch(r"\$\{?\d+\}?", shown):
        return "give the script's arguments: -- ARGS, or --script-args TEXT"
    name = re.fullmatch(r"\$\{?([A-Za-z_]\w*)\}?", shown)
    return f"say what it depends on, or it: --set {name[1]}=VALUE" if name else "write the value itself"
