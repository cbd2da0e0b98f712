"""Operations as tools of the Model Context Protocol: their names, words and schemas are those of the HTTP service.

The schema of a tool is one object with every part of the question: those of the path, of the query and of the body, as
the OpenAPI document has them.  Pages, the data of drawings and sweeps, which run for hours, are no tools.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from planner.operations.operation import Operation
from planner.operations.registry import OPERATIONS

_SCHEMAS = "#/components/schemas/"
JSON = "application/json"
DRAWINGS = frozenset({"get_timeline", "get_step", "get_mesh"})
"""Long lists of shapes for a screen."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a call of a tool sends: the parts of the path, of the query and of the body."""

    method: str
    path: str
    query: Mapping[str, Any]
    body: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Tool:
    """One operation as a tool.  ``schema``: JSON Schema of its arguments, complete in itself."""

    operation: Operation[Any, Any]
    schema: Mapping[str, Any]
    in_path: frozenset[str]
    in_query: frozenset[str]
    has_body: bool

    @property
    def name(self) -> str:
        """The operation's."""
        return self.operation.name

    @property
    def description(self) -> str:
        """What it does, in the words of the OpenAPI document."""
        return f"{self.operation.summary}.\n\n{self.operation.description}"

    @property
    def only_reads(self) -> bool:
        """Whether nothing is stored by it."""
        return self.operation.scope == "read"

    def unknown(self, arguments: Mapping[str, Any]) -> str | None:
        """What is wrong with names that the tool does not have."""
        names = self.schema["properties"]
        wrong = [name for name in arguments if name not in names]
        return f"{self.name} has no argument {', '.join(wrong)}; it takes {', '.join(names)}" if wrong else None

    @property
    def removes(self) -> bool:
        """Whether something that is stored goes."""
        return self.operation.method == "DELETE"

    def call(self, arguments: Mapping[str, Any]) -> ToolCall:
        """The request of these arguments."""
        path = self.operation.path
        for part in self.in_path:
            path = path.replace(f"{{{part}}}", _quoted(arguments.get(part)))
        query = {name: _worded(value) for name, value in arguments.items() if name in self.in_query}
        rest = {name: value for name, value in arguments.items() if name not in self.in_path | self.in_query}
        return ToolCall(self.operation.method, path, query, rest if self.has_body else None)


def tools(document: Mapping[str, Any]) -> dict[str, Tool]:
    """The tools of a service by name.  ``document``: its OpenAPI document."""
    found = {}
    for operation in OPERATIONS:
        entry = document["paths"].get(operation.path, {}).get(operation.method.lower())
        if entry is None or operation.runs == "sweep" or operation.name in DRAWINGS:
            continue
        if JSON not in entry["responses"]["200"].get("content", {}):
            continue
        found[operation.name] = _tool(operation, entry, document["components"]["schemas"])
    return found


def _tool(operation: Operation[Any, Any], entry: Mapping[str, Any], schemas: Mapping[str, Any]) -> Tool:
    parts = {each["name"]: each for each in entry.get("parameters", ()) if each["in"] in ("path", "query")}
    properties = {name: {"description": each.get("description", ""), **each["schema"]} for name, each in parts.items()}
    required = [name for name, each in parts.items() if each.get("required")]
    content = entry.get("requestBody", {}).get("content", {}).get(JSON)
    if content is not None:
        body = schemas[content["schema"]["$ref"].removeprefix(_SCHEMAS)]
        properties |= body.get("properties", {})
        required += body.get("required", [])
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    needed = _needed(schema, schemas)
    if needed:
        schema["$defs"] = {name: schemas[name] for name in sorted(needed)}
    in_path = frozenset(name for name, each in parts.items() if each["in"] == "path")
    return Tool(operation, _moved(schema), in_path, frozenset(parts) - in_path, content is not None)


def _needed(schema: Any, schemas: Mapping[str, Any]) -> set[str]:
    """Names of every schema that is referred to, however deep."""
    found, waiting = set[str](), [schema]
    while waiting:
        for name in _references(waiting.pop()):
            if name not in found:
                found.add(name)
                waiting.append(schemas[name])
    return found


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key == "$ref":
                yield value.removeprefix(_SCHEMAS)
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _moved(schema: Any) -> Any:
    """The same, with references into ``$defs``."""
    if isinstance(schema, Mapping):
        return {
            key: value.replace(_SCHEMAS, "#/$defs/") if key == "$ref" else _moved(value)
            for key, value in schema.items()
            if key != "discriminator"
        }
    return [_moved(value) for value in schema] if isinstance(schema, list) else schema


def _quoted(value: Any) -> str:
    return quote(str("-" if value in (None, "") else value), safe="")


def _worded(value: Any) -> Any:
    """As a query says it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return [_worded(each) for each in value] if isinstance(value, list) else value
