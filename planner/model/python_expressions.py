"""Expressions of a Python script that is read and not run (``python_script``)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.model.python_values import BINARY, BUILTINS, COMPARED, Open, Ref, Thing, argparse_values, plain_thing
from planner.model.shell.scope import Undecided

Factory = Callable[[str, list[Any], dict[str, Any], int], Any]
"""(dotted name, arguments, keyword arguments, line) of a call -> what it makes; None = a plain ``Thing``."""
_TRAINS = frozenset({"pretrain", "finetune", "train", "run", "add", "run_pretrain", "run_config", "validate_config"})
"""Last names of the calls that start a run of the configuration that they are given."""
_FILLS = frozenset({"append", "extend", "insert", "update", "add"})
"""Methods that change a list or dictionary."""
_CONFIGURATION = "recipe "
"""Names of things that are whole configurations begin so."""
_LONGEST = 100_000
_SET, _GET = 3, 2
"""Arguments of ``setattr`` and the fewest of ``getattr``."""


@dataclass(slots=True)
class Followed:
    """``trained``: what was given to calls that start runs, in order.  ``made``: what the factory made, in order.

    ``asked``: environment variables that the script reads.
    """

    trained: list[Thing] = field(default_factory=list)
    made: list[Thing] = field(default_factory=list)
    undecided: list[Undecided] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)


class Expressions:
    """Values of expressions; ``names`` are those of the function that they stand in."""

    def __init__(self, factory: Factory, words: tuple[str, ...], variables: Mapping[str, str]) -> None:
        self.factory = factory
        self.words = words
        self.variables = variables
        self.functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = {}
        self.found = Followed()

    def function(self, name: str, arguments: list[Any], settings: dict[str, Any], node: ast.Call, depth: int) -> Any:
        """What a function of the file gives."""
        raise NotImplementedError

    def value(self, node: ast.expr, names: dict[str, Any], depth: int) -> Any:
        """The value of an expression; Open where the text does not decide it."""

        def inner(part: ast.expr) -> Any:
            return self.value(part, names, depth)

        if isinstance(node, ast.Name):
            return names[node.id] if node.id in names else self.named(node)
        if isinstance(node, ast.Call):
            return self.call(node, names, depth)
        if isinstance(node, (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.JoinedStr)):
            return self.written(node, inner)
        if isinstance(node, ast.Attribute):
            return self.attribute(inner(node.value), node)
        if isinstance(node, ast.Subscript):
            return self.subscript(inner(node.value), inner(node.slice), node)
        if isinstance(node, ast.BinOp):
            return self.combined(node.op, inner(node.left), inner(node.right), node)
        return self.decided(node, inner)

    def is_open(self, value: Any) -> bool:
        """Whether the text does not decide a value: also what a call gives that is not followed, and imported names."""
        if isinstance(value, Thing):
            return bool(value.name) and not any(value is each for each in self.found.made)
        return isinstance(value, (Open, Ref))

    def written(
        self, node: ast.Constant | ast.List | ast.Tuple | ast.Dict | ast.JoinedStr, inner: Callable[[ast.expr], Any]
    ) -> Any:
        """What literals write."""
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            return {inner(key): inner(value) for key, value in pairs if isinstance(key, ast.Constant)}
        if isinstance(node, ast.JoinedStr):
            parts = [inner(each.value) if isinstance(each, ast.FormattedValue) else inner(each) for each in node.values]
            known = all(isinstance(part, (str, int, float)) for part in parts)
            return "".join(map(str, parts)) if known else self.open(node)
        return [inner(each) for each in node.elts if not isinstance(each, ast.Starred)]

    def decided(self, node: ast.expr, inner: Callable[[ast.expr], Any]) -> Any:
        """Signs, comparisons and choices."""
        if isinstance(node, ast.UnaryOp):
            held = inner(node.operand)
            if self.is_open(held):
                return self.open(node)
            if isinstance(node.op, ast.Not):
                return not held
            return -held if isinstance(node.op, ast.USub) and isinstance(held, (int, float)) else held
        if isinstance(node, ast.BoolOp):
            return self.either([inner(each) for each in node.values], isinstance(node.op, ast.Or))
        if isinstance(node, ast.Compare):
            return self.compare(node, inner)
        if isinstance(node, ast.IfExp):
            test = inner(node.test)
            return self.open(node) if self.is_open(test) else inner(node.body if test else node.orelse)
        return self.open(node)

    def open(self, node: ast.expr) -> Open:
        """The expression itself, as an open value."""
        return Open(ast.unparse(node)[:60], node.lineno)

    def named(self, node: ast.Name) -> Any:
        """A name that nothing was assigned to: of the file, of Python itself, or a starred import."""
        return Ref(node.id) if node.id in self.functions or node.id in BUILTINS else Ref(f"?.{node.id}")

    def attribute(self, held: Any, node: ast.Attribute) -> Any:
        """A field of a thing, or a name behind an imported one."""
        if isinstance(held, Ref):
            return Ref(f"{held.name}.{node.attr}")
        if isinstance(held, Thing):
            return (
                held.fields[node.attr] if node.attr in held.fields else Open(ast.unparse(node)[:60], node.lineno, held)
            )
        return Open(ast.unparse(node)[:60], node.lineno)

    def subscript(self, held: Any, key: Any, node: ast.expr) -> Any:
        """An item of a list, a dictionary or the environment."""
        if isinstance(held, Ref) and held.name == "os.environ" and isinstance(key, str):
            return self.environment(key, None, node)
        if isinstance(held, dict) and isinstance(key, (str, int)) and key in held:
            return held[key]
        if isinstance(held, (list, tuple, str)) and isinstance(key, int) and -len(held) <= key < len(held):
            return held[key]
        return self.open(node)

    def environment(self, name: str, default: Any, node: ast.expr) -> Any:
        """A variable of the environment, or what the script takes without it."""
        self.found.asked.add(name)
        return self.variables.get(name, self.open(node) if default is None else default)

    def combined(self, operator: ast.operator, left: Any, right: Any, node: Any) -> Any:
        """What an operator gives for numbers, texts and lists."""
        work = BINARY.get(type(operator))
        lists = isinstance(left, list) and isinstance(right, (list, int)) and isinstance(operator, (ast.Add, ast.Mult))
        plain = all(isinstance(each, (int, float, str)) for each in (left, right)) or lists
        try:
            long = isinstance(operator, (ast.Pow, ast.LShift)) and max(abs(left), abs(right)) > 1000
            if work is not None and plain and not long:
                result = work(left, right)
                return result if not hasattr(result, "__len__") or len(result) < _LONGEST else self.open(node)
        except (TypeError, ValueError, ArithmeticError, MemoryError):
            pass
        return Open(ast.unparse(node)[:60], node.lineno)

    def either(self, values: Sequence[Any], is_or: bool) -> Any:
        """The value of ``and`` or ``or``."""
        for value in values:
            if self.is_open(value) or bool(value) == is_or:
                return value
        return values[-1]

    def compare(self, node: ast.Compare, inner: Callable[[ast.expr], Any]) -> Any:
        """Whether comparisons hold."""
        left = inner(node.left)
        for operator, part in zip(node.ops, node.comparators, strict=True):
            right = inner(part)
            work = COMPARED.get(type(operator))
            if work is None or self.is_open(left) or self.is_open(right):
                return self.open(node)
            try:
                if not work(left, right):
                    return False
            except TypeError:
                return self.open(node)
            left = right
        return True

    def call(self, node: ast.Call, names: dict[str, Any], depth: int) -> Any:
        """What a call gives."""
        arguments = [self.value(each, names, depth) for each in node.args if not isinstance(each, ast.Starred)]
        settings: dict[str, Any] = {}
        for word in node.keywords:
            value = self.value(word.value, names, depth)
            if word.arg is not None:
                settings[word.arg] = value
            elif isinstance(value, dict):
                settings |= {str(key): each for key, each in value.items()}
        if isinstance(node.func, ast.Attribute):
            held = self.value(node.func.value, names, depth)
            if not isinstance(held, Ref):
                return self.method(held, node, arguments, settings)
        return self.made(self.value(node.func, names, depth), arguments, settings, node, depth)

    def method(self, held: Any, node: ast.Call, arguments: list[Any], settings: dict[str, Any]) -> Any:
        """A method of a value: of argument parsers and dictionaries; anything else that takes a configuration."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if isinstance(held, Thing) and held.name.endswith("ArgumentParser"):
            if name in ("parse_args", "parse_known_args"):
                given, rest = argparse_values(held, self.words, node.lineno)
                return given if name == "parse_args" else [given, rest]
            if name in ("add_argument_group", "add_mutually_exclusive_group"):
                return held
            if name == "add_argument":
                held.calls.append((arguments, settings))
            return None
        if isinstance(held, dict) and name in ("get", "pop") and arguments and isinstance(arguments[0], (str, int)):
            return held.get(arguments[0], arguments[1] if len(arguments) > 1 else None)
        if isinstance(held, dict) and name == "items":
            return [list(pair) for pair in held.items()]
        if isinstance(held, list) and name in ("append", "extend") and arguments:
            held += arguments if name == "append" else list(arguments[0]) if isinstance(arguments[0], list) else []
            return None
        if isinstance(held, str) and name in ("lower", "upper", "strip") and not arguments:
            return getattr(held, name)()
        self.trains(name, arguments, settings)
        if isinstance(held, Open) and held.of is not None and name in _FILLS:
            self.found.undecided.append(Undecided(node.lineno, f"{held.text}.{name}(...)", "set the list itself"))
        if not isinstance(held, Thing):
            return self.open(node)
        if name == "broadcast" and not arguments:  # of Fiddle: the fields of that name, wherever there is one
            self.broadcast(held, settings, node.lineno)
            return None
        return self.produced(f"{held.name}.{name}", [held, *arguments], settings, node)

    def broadcast(self, thing: Thing, settings: Mapping[str, Any], line: int) -> None:
        """Set fields everywhere below that has a field of the name."""
        for each in [thing, *(held for _, held in thing.flat() if isinstance(held, Thing))]:
            for name in settings.keys() & each.fields.keys():
                each.set(name, settings[name], line)

    def trains(self, name: str, arguments: Sequence[Any], settings: Mapping[str, Any]) -> None:
        """Note a configuration that a call is given which starts a run."""
        if name in _TRAINS:
            things = [each for each in (*arguments, *settings.values()) if isinstance(each, Thing)]
            made = [each for each in things if any(each is one for one in self.found.made)]
            if made:
                self.found.trained.append(made[0])

    def made(self, called: Any, arguments: list[Any], settings: dict[str, Any], node: ast.Call, depth: int) -> Any:
        """What calling a name gives."""
        if isinstance(called, Thing) and called.name.endswith("partial"):
            first = called.positional[0] if called.positional else None
            return self.made(first, [*called.positional[1:], *arguments], called.fields | settings, node, depth)
        if not isinstance(called, Ref):
            return self.open(node)
        name = called.name
        if name in self.functions:
            return self.function(name, arguments, settings, node, depth)
        if name in ("os.getenv", "os.environ.get") and arguments and isinstance(arguments[0], str):
            default = arguments[1] if len(arguments) > 1 else settings.get("default")
            return self.environment(arguments[0], default, node)
        if name in ("copy.deepcopy", "copy.copy") and arguments:
            return arguments[0]
        if name in BUILTINS:
            return self.builtin(name, arguments, node)
        if name.endswith("cli.main") and isinstance(settings.get("default_factory"), Ref):
            return self.entry(settings["default_factory"], node, depth)
        self.trains(name.rpartition(".")[2], arguments, settings)
        return self.produced(name, arguments, settings, node)

    def produced(self, name: str, arguments: list[Any], settings: dict[str, Any], node: ast.Call) -> Any:
        """What the factory makes of a call, or the call itself."""
        result = self.factory(name, arguments, settings, node.lineno)
        if isinstance(result, Thing):
            self.found.made.append(result)
        if result is None and (config := self.handed_over(name, arguments, settings, node)) is not None:
            return config
        return plain_thing(name, arguments, settings, node.lineno) if result is None else result

    def entry(self, default: Ref, node: ast.Call, depth: int) -> None:
        """The run of a script that gives a command line to a function: the factory that the words name, or its own."""
        words = [*self.words, ""]
        said = next((words[place + 1] for place, word in enumerate(words) if word in ("--factory", "-f")), "")
        name = said.partition("(")[0]
        if name and name not in self.functions:
            return  # one of another file: the reader of the words finds it
        config = self.made(Ref(name) if name else default, [], {}, node, depth)
        if isinstance(config, Thing):
            self.found.trained.append(config)

    def handed_over(
        self, name: str, arguments: Sequence[Any], settings: Mapping[str, Any], node: ast.Call
    ) -> Thing | None:
        """A configuration that a function of another file is given: it may change it, which is told; and give it back.

        Calls that start runs change nothing.
        """
        things = [each for each in (*arguments, *settings.values()) if isinstance(each, Thing)]
        configs = [each for each in things if each.name.startswith(_CONFIGURATION)]
        if not configs or name.rpartition(".")[2] in _TRAINS or things[0] is not configs[0]:
            return None
        said = "what it changes is not read: write it into the script, or say it: -- PATH=VALUE"
        self.found.undecided.append(Undecided(node.lineno, f"{name.removeprefix('?.')}(...)", said))
        return configs[0]

    def builtin(self, name: str, arguments: list[Any], node: ast.Call) -> Any:
        """What a function of Python itself gives."""
        if name == "setattr" and len(arguments) == _SET and isinstance(arguments[0], Thing):
            arguments[0].set(str(arguments[1]), arguments[2], node.lineno)
            return None
        if name == "getattr" and len(arguments) >= _GET and isinstance(arguments[1], str):
            held = arguments[0]
            if isinstance(held, Ref):
                return Ref(f"{held.name}.{arguments[1]}")
            return held.fields.get(arguments[1], self.open(node)) if isinstance(held, Thing) else self.open(node)
        if any(isinstance(each, (Open, Ref, Thing)) for each in arguments):
            return self.open(node)
        try:
            result = BUILTINS[name](*arguments)
        except (TypeError, ValueError, OverflowError):
            return self.open(node)
        return list(result)[:1000] if isinstance(result, range) else result
