"""Integer arithmetic of the shell: ``$(( ))``, ``(( ))``, ``let``.

Operators by strength: ``? :``, ``||``, ``&&``, ``|``, ``^``, ``&``, ``== !=``, ``< > <= >=``, ``<< >>``, ``+ -``,
``* / %``, ``**``, and ``= += -= *= /=``, ``++ --``.  Division rounds to zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(r"\s*(?:(?P<number>0[xX][0-9a-fA-F]+|\d+)|(?P<name>[A-Za-z_]\w*)|(?P<sign>\*\*|<<|>>|<=|>=|==|!=|&&"
                    r"|\|\||\+\+|--|[-+*/%]=|[-+*/%<>=!~&|^?:(),]))")  # fmt: skip
_STRENGTH = {
    "||": 2, "&&": 3, "|": 4, "^": 5, "&": 6, "==": 7, "!=": 7, "<": 8, ">": 8, "<=": 8, ">=": 8,
    "<<": 9, ">>": 9, "+": 10, "-": 10, "*": 11, "/": 11, "%": 11, "**": 12,
}  # fmt: skip
_LARGEST = 10**18
_DEEPEST = 50


class ArithmeticUnknownError(ValueError):
    """The text does not decide the value, or it is no arithmetic."""


class Arithmetic:
    """One expression.  ``value_of`` gives a variable's text (None: not known), ``store`` assigns."""

    def __init__(
        self, text: str, value_of: Callable[[str], str | None], store: Callable[[str, str], None] | None = None
    ) -> None:
        self.tokens = _tokens(text)
        self.place = 0
        self.depth = 0
        self.value_of = value_of
        self.store = store

    def value(self) -> int:
        """The value.  Raises ArithmeticUnknownError."""
        if not self.tokens:
            return 0
        result = self._ternary()
        while self._take(","):
            result = self._ternary()
        if self.place < len(self.tokens):
            raise ArithmeticUnknownError(self.tokens[self.place])
        return result

    def _peek(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def _take(self, *signs: str) -> bool:
        if self._peek() in signs:
            self.place += 1
            return True
        return False

    def _ternary(self) -> int:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ArithmeticUnknownError("too deep")
        condition = self._binary(2)
        if self._take("?"):
            yes = self._ternary()
            if not self._take(":"):
                raise ArithmeticUnknownError("?")
            no = self._ternary()
            condition = yes if condition else no
        self.depth -= 1
        return condition

    def _binary(self, least: int) -> int:
        left = self._unary()
        while _STRENGTH.get(self._peek(), 0) >= least:
            sign = self._peek()
            self.place += 1
            right = self._binary(_STRENGTH[sign] + (sign != "**"))
            left = _apply(sign, left, right)
        return left

    def _unary(self) -> int:
        token = self._peek()
        self.place += 1
        if token in ("-", "+", "!", "~"):
            value = self._unary()
            return {"-": -value, "+": value, "!": int(not value), "~": ~value}[token]
        if token in ("++", "--"):
            return self._assign(self._name(), "+=" if token == "++" else "-=", 1)
        if token == "(":
            value = self._ternary()
            if not self._take(")"):
                raise ArithmeticUnknownError("(")
            return value
        if token[:1].isdigit():
            return int(token, 0) if token[:2].lower() == "0x" else int(token)
        if not token[:1].isalpha() and token[:1] != "_":
            raise ArithmeticUnknownError(token or "end")
        return self._variable(token)

    def _name(self) -> str:
        token = self._peek()
        self.place += 1
        return token

    def _variable(self, name: str) -> int:
        sign = self._peek()
        if sign in ("=", "+=", "-=", "*=", "/=", "%="):
            self.place += 1
            return self._assign(name, sign, self._ternary())
        if sign in ("++", "--"):
            self.place += 1
            before = self._read(name)
            self._assign(name, "+=" if sign == "++" else "-=", 1)
            return before
        return self._read(name)

    def _read(self, name: str) -> int:
        text = self.value_of(name)
        if text is None:
            raise ArithmeticUnknownError(name)
        text = text.strip()
        if re.fullmatch(r"-?\d{1,18}", text):
            return int(text)
        if text == "":
            return 0
        inner = Arithmetic(text, self.value_of)
        inner.depth = self.depth + 1
        return inner.value()

    def _assign(self, name: str, sign: str, value: int) -> int:
        if self.store is None:
            raise ArithmeticUnknownError(name)
        result = value if sign == "=" else _apply(sign[0], self._read(name), value)
        self.store(name, str(result))
        return result


def _tokens(text: str) -> list[str]:
    tokens, place, text = list[str](), 0, text.strip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or match.end() == place or len(tokens) > 10_000:
            raise ArithmeticUnknownError(text[place : place + 20])
        tokens.append(match[0].strip())
        place = match.end()
    return tokens


def _apply(sign: str, left: int, right: int) -> int:
    if (sign in ("/", "%") and right == 0) or (sign in ("**", "<<", ">>") and not 0 <= right <= 64):
        raise ArithmeticUnknownError(sign)
    results: dict[str, Callable[[], int]] = {
        "||": lambda: int(bool(left) or bool(right)),
        "&&": lambda: int(bool(left) and bool(right)),
        "|": lambda: left | right,
        "^": lambda: left ^ right,
        "&": lambda: left & right,
        "==": lambda: int(left == right),
        "!=": lambda: int(left != right),
        "<": lambda: int(left < right),
        ">": lambda: int(left > right),
        "<=": lambda: int(left <= right),
        ">=": lambda: int(left >= right),
        "<<": lambda: left << right,
        ">>": lambda: left >> right,
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1),
        "%": lambda: abs(left) % abs(right) * (1 if left >= 0 else -1),
        "**": lambda: int(left**right),
    }
    result = results[sign]()
    if abs(result) > _LARGEST:
        raise ArithmeticUnknownError("too large")
    return result
