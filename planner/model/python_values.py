"""Values of a Python script that is read and not run (``python_script``), and the operators that are followed."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: lambda left, right: left is right,
    ast.IsNot: lambda left, right: left is not right,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
BUILTINS: dict[str, Callable[..., Any]] = {
    "int": int, "float": float, "str": str, "bool": bool, "len": len, "min": min, "max": max, "range": range,
    "list": list, "dict": dict, "abs": abs, "round": round, "sum": sum,
    "getattr": getattr, "setattr": setattr,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ref:
    """A name that is imported or dotted behind one: a module, function or class of other files."""

    name: str


@dataclass(slots=True)
class Thing:
    """What a call gives: ``name`` of the called, its arguments, and what is set on it since."""

    name: str
    line: int = 0
    positional: list[Any] = field(default_factory=list)
    fields: dict[str, Any] = field(default_factory=dict)
    replaces: Any = None
    calls: list[tuple[list[Any], dict[str, Any]]] = field(default_factory=list)
    said: dict[str, int] = field(default_factory=dict)
    """Fields that the script itself set, with the line."""

    def set(self, name: str, value: Any, line: int) -> None:
        """``thing.name = value`` at a line."""
        self.fields[name] = value
        self.said[name] = line

    def flat(self, above: str = "", inside: tuple[Thing, ...] = ()) -> Iterator[tuple[str, Any]]:
        """``section.field`` and value of everything below; of a thing that holds one it stands in, itself alone."""
        held_in = (*inside, self)
        for name, value in self.fields.items():
            yield f"{above}{name}", value
            if isinstance(value, Thing) and not any(value is each for each in held_in):
                yield from value.flat(f"{above}{name}.", held_in)

    def set_by_script(self, above: str = "", inside: tuple[Thing, ...] = ()) -> Iterator[str]:
        """Paths that the script itself set."""
        held_in = (*inside, self)
        for name, value in self.fields.items():
            if name in self.said:
                yield f"{above}{name}"
            if isinstance(value, Thing) and not any(value is each for each in held_in):
                yield from value.set_by_script(f"{above}{name}.", held_in)


def plain_thing(name: str, arguments: list[Any], settings: dict[str, Any], line: int) -> Thing:
    """A call whose keyword arguments are fields that the script set."""
    return Thing(name, line, arguments, dict(settings), said=dict.fromkeys(settings, line))


@dataclass(frozen=True, slots=True)
class Open:
    """A value that the text does not decide; ``of``: the thing whose field it is, where nothing was said of it."""

    text: str
    line: int
    of: Thing | None = None


def plain(value: Any) -> Any:
    """A value as configuration files have it: a torch type by its name, a thing by the name of its class."""
    if isinstance(value, Ref):
        return value.name.removeprefix("torch.")
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


def argparse_values(parser: Thing, words: Sequence[str], line: int) -> tuple[Thing, list[str]]:
    """What ``parse_known_args`` gives for these words: values by name, and the words that are no argument."""
    given: dict[str, Any] = {}
    options: dict[str, tuple[str, dict[str, Any]]] = {}
    for arguments, settings in parser.calls:
        names = [str(each) for each in arguments if isinstance(each, str)]
        long = next((each for each in names if each.startswith("--")), names[0] if names else "")
        target = str(settings.get("dest") or long.lstrip("-").replace("-", "_"))
        options |= dict.fromkeys(names, (target, settings))
        action = settings.get("action")
        switch = {"store_true": False, "store_false": True}.get(action) if isinstance(action, str) else None
        default = settings.get("default", switch)
        missing = default is None and settings.get("required") is True
        given[target] = Open(f"the argument {long}", line) if missing else default
    rest: list[str] = []
    place = 0
    while place < len(words):
        name, equals, value = words[place].partition("=")
        place += 1
        if name not in options or (equals and not name.startswith("-")):
            rest.append(words[place - 1])
            continue
        target, settings = options[name]
        if settings.get("action") in ("store_true", "store_false"):
            given[target] = settings["action"] == "store_true"
            continue
        if not equals and place < len(words):
            value = words[place]
            place += 1
        given[target] = _typed(value, settings.get("type"))
    return Thing("arguments", line, [], given), rest


def _typed(word: str, kind: Any) -> Any:
    name = kind.name if isinstance(kind, Ref) else ""
    try:
        return {"int": int, "float": float}.get(name, str)(word)
    except ValueError:
        return word
