"""A Python script that configures a training run, followed as far as it is data: nothing of it is executed.

Assignments, attributes, calls of functions of the same file, ``if`` with a decided test, loops over lists, ``argparse``
with its defaults and the words of a command line, and environment variables are followed.  Every other call is a
``Thing``: its name, arguments and what is set on it.  What is not decided is ``Open``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planner.model.python_expressions import Expressions, Factory, Followed
from planner.model.python_values import Open, Ref, Thing
from planner.model.shell.scope import Undecided
from profiles.errors import DocumentInvalid
from profiles.text_limits import check_size

MOST_STEPS = 20_000
_DEPTH = 12
_SAYS_ONLY = frozenset({"print", "info", "warning", "debug", "error", "log", "barrier"})
"""Last names of calls that change no configuration."""


class _ReturnedError(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


def follow(
    text: str, where: str, factory: Factory, words: Sequence[str] = (), variables: Mapping[str, str] | None = None
) -> Followed:
    """What a script configures.  Raises DocumentInvalid for a text that is no Python, or too long to follow."""
    check_size(text, where)
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise DocumentInvalid(f"not Python: {error}", where=where) from error
    reader = _Reader(where, factory, tuple(words), variables or {})
    try:
        reader.block(body, reader.globals, 0)
    except _ReturnedError:
        pass
    except RecursionError:
        raise DocumentInvalid("too many calls inside each other", where=where) from None
    return reader.found


class _Reader(Expressions):
    """One walk through a script's statements."""

    def __init__(self, where: str, factory: Factory, words: tuple[str, ...], variables: Mapping[str, str]) -> None:
        super().__init__(factory, words, variables)
        self.where = where
        self.globals: dict[str, Any] = {"__name__": "__main__"}
        self.steps = 0
        self.work: dict[type[ast.stmt], Callable[[Any, dict[str, Any], int], None]] = {
            ast.Import: self.imported,
            ast.ImportFrom: self.imported_from,
            ast.FunctionDef: self.defined,
            ast.AsyncFunctionDef: self.defined,
            ast.Assign: self.assigned,
            ast.AnnAssign: self.annotated,
            ast.AugAssign: self.augmented,
            ast.Expr: lambda node, names, depth: self.value(node.value, names, depth) and None,
            ast.Return: self.returned,
            ast.If: self.branch,
            ast.For: self.loop,
            ast.With: self.inside,
            ast.AsyncWith: self.inside,
            ast.Try: self.tried,
            ast.While: lambda node, names, depth: self.open_place(node, "a loop that may not end", node.body),
        }

    def block(self, body: Sequence[ast.stmt], names: dict[str, Any], depth: int) -> None:
        for node in body:
            self.steps += 1
            if self.steps > MOST_STEPS:
                raise DocumentInvalid("the script takes too many steps to follow", where=self.where)
            work = self.work.get(type(node))
            if work is not None:
                work(node, names, depth)

    def imported(self, node: ast.Import, names: dict[str, Any], depth: int) -> None:
        del depth
        for each in node.names:
            whole = each.name if each.asname else each.name.split(".", maxsplit=1)[0]
            names[each.asname or whole] = Ref(whole)

    def imported_from(self, node: ast.ImportFrom, names: dict[str, Any], depth: int) -> None:
        del depth
        for each in node.names:
            names[each.asname or each.name] = Ref(f"{node.module}.{each.name}" if node.module else each.name)

    def defined(self, node: ast.FunctionDef | ast.AsyncFunctionDef, names: dict[str, Any], depth: int) -> None:
        del depth
        self.functions[node.name] = node
        names.pop(node.name, None)

    def assigned(self, node: ast.Assign, names: dict[str, Any], depth: int) -> None:
        value = self.value(node.value, names, depth)
        for target in node.targets:
            self.assign(target, value, names, depth)

    def annotated(self, node: ast.AnnAssign, names: dict[str, Any], depth: int) -> None:
        if node.value is not None:
            self.assign(node.target, self.value(node.value, names, depth), names, depth)

    def augmented(self, node: ast.AugAssign, names: dict[str, Any], depth: int) -> None:
        old = self.value(node.target, names, depth)
        value = self.combined(node.op, old, self.value(node.value, names, depth), node)
        self.assign(node.target, value, names, depth)

    def returned(self, node: ast.Return, names: dict[str, Any], depth: int) -> None:
        raise _ReturnedError(None if node.value is None else self.value(node.value, names, depth))

    def inside(self, node: ast.With | ast.AsyncWith, names: dict[str, Any], depth: int) -> None:
        for item in node.items:
            value = self.value(item.context_expr, names, depth)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value, names, depth)
        self.block(node.body, names, depth)

    def tried(self, node: ast.Try, names: dict[str, Any], depth: int) -> None:
        self.block(node.body, names, depth)
        self.block(node.finalbody, names, depth)

    def branch(self, node: ast.If, names: dict[str, Any], depth: int) -> None:
        test = self.value(node.test, names, depth)
        if self.is_open(test):
            what = f"if {ast.unparse(node.test)[:60]}"
            self.open_place(node, what, [*node.body, *node.orelse])
            return
        self.block(node.body if test else node.orelse, names, depth)

    def open_place(self, node: ast.stmt, what: str, body: Sequence[ast.stmt]) -> None:
        """Note a place that is left out, where it could set something of a configuration."""
        parts = [part for each in body for part in ast.walk(each)]
        if any(map(_may_set, parts)):
            said = "give its arguments: -- ARGS, or variables: --set NAME=VALUE; else it is left out"
            self.found.undecided.append(Undecided(node.lineno, what, said))

    def loop(self, node: ast.For, names: dict[str, Any], depth: int) -> None:
        values = self.value(node.iter, names, depth)
        if isinstance(values, dict):
            values = list(values)
        if not isinstance(values, (list, tuple)):
            self.open_place(node, f"for ... in {ast.unparse(node.iter)[:40]}", node.body)
            return
        for value in values:
            self.assign(node.target, value, names, depth)
            self.block(node.body, names, depth)

    def assign(self, target: ast.expr, value: Any, names: dict[str, Any], depth: int) -> None:
        match target:
            case ast.Name():
                names[target.id] = value
            case ast.Tuple() | ast.List():
                parts = value if isinstance(value, (list, tuple)) and len(value) == len(target.elts) else None
                for place, each in enumerate(target.elts):
                    part = Open(ast.unparse(each), target.lineno) if parts is None else parts[place]
                    self.assign(each, part, names, depth)
            case ast.Attribute():
                owner = self.owner(target.value, names, depth)
                if isinstance(owner, Thing):
                    owner.set(target.attr, value, target.lineno)
                elif isinstance(owner, Open):
                    what = f"{ast.unparse(target)[:60]} = ..."
                    said = "it sets a field of what is not followed; write it on the configuration itself"
                    self.found.undecided.append(Undecided(target.lineno, what, said))
            case ast.Subscript():
                owner, key = self.value(target.value, names, depth), self.value(target.slice, names, depth)
                if isinstance(owner, dict) and isinstance(key, (str, int)):
                    owner[key] = value

    def owner(self, node: ast.expr, names: dict[str, Any], depth: int) -> Any:
        """The object that an attribute is set on; a section that nothing was said of begins here."""
        if isinstance(node, ast.Attribute):
            below = self.owner(node.value, names, depth)
            if isinstance(below, Thing):
                held = below.fields.get(node.attr)
                if not isinstance(held, Thing):
                    held = below.fields[node.attr] = Thing("", node.lineno, replaces=held)
                return held
            return below
        return self.value(node, names, depth)

    def function(self, name: str, arguments: list[Any], settings: dict[str, Any], node: ast.Call, depth: int) -> Any:
        """A function of the file, with what its parameters are given, beside the file's own names."""
        if depth > _DEPTH:
            raise DocumentInvalid(f"{name} calls itself", where=self.where)
        told = self.functions[name].args
        names: dict[str, Any] = dict(self.globals)
        parameters = [each.arg for each in (*told.posonlyargs, *told.args)]
        for parameter, default in zip(reversed(parameters), reversed(told.defaults), strict=False):
            names[parameter] = self.value(default, names, depth)
        for keyword, given in zip(told.kwonlyargs, told.kw_defaults, strict=True):
            names[keyword.arg] = self.open(node) if given is None else self.value(given, names, depth)
        names |= dict(zip(parameters, arguments, strict=False)) | settings
        for parameter in parameters:
            names.setdefault(parameter, Open(parameter, node.lineno))
        try:
            self.block(self.functions[name].body, names, depth + 1)
        except _ReturnedError as returned:
            return returned.value
        return None


def _may_set(part: ast.AST) -> bool:
    """Whether a part of a statement may set something, or decide what a function gives."""
    if isinstance(part, ast.Call):
        name = part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
        return name not in _SAYS_ONLY and bool(part.args or part.keywords)
    return isinstance(part, (ast.Assign, ast.AugAssign, ast.Return))
