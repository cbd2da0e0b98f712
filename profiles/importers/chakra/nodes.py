"""The nodes of a Chakra graph, in protobuf or in JSON."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from profiles.errors import DocumentInvalid
from profiles.importers.chakra.wire import (
    WireError,
    attribute_value,
    delimited,
    fields,
    numbers_of,
    text_of,
    whole_of,
)
from profiles.importing.imported import Imported

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
_MAX_NODES = 20_000_000
_MAX_LITERAL = 20_000


@dataclass(slots=True)
class ChakraNode:
    """One node; ``duration_us`` as stored, lists as JSON texts."""

    identity: int
    name: str
    kind: int
    row: int
    duration_us: int = 0
    controls: list[int] = field(default_factory=list)
    is_host: bool = False
    attributes: dict[str, int | float | str | bool] = field(default_factory=dict)
    dims: bytes = b""
    types: bytes = b""
    concrete: bytes = b""


@dataclass(slots=True)
class Graph:
    """All nodes of one file and what its metadata says."""

    schema: str = ""
    nodes: list[ChakraNode] = field(default_factory=list)


def protobuf_graph(where: str, raw: bytes, imported: Imported) -> Graph:
    """Decode an ``.et`` file.  Raises DocumentInvalid with the byte where it breaks off."""
    graph = Graph()
    for row, (start, end) in enumerate(_messages(where, raw)):
        try:
            found = fields(raw[start:end])
            if row == 0:
                graph.schema = _schema(found)
                continue
            graph.nodes.append(_node(found, row))
        except WireError as error:
            if row == 0 or len(imported.bad_rows) >= 1000:
                at = start + error.position
                raise DocumentInvalid(f"not a Chakra graph: {error}", where=f"{where}:byte {at}", hint=_HINT) from None
            imported.bad(f"node {row} (byte {start})", f"not a node: {error}", "write the graph again")
    return graph


_HINT = "copy the file again, or convert the trace again with chakra_converter"


def _messages(where: str, raw: bytes) -> Iterator[tuple[int, int]]:
    position = count = 0
    while position < len(raw):
        try:
            start, end = delimited(raw, position)
        except WireError as error:
            what = f"the graph breaks off at byte {position:,}: {error}"
            raise DocumentInvalid(what, where=f"{where}:byte {position}", hint=_HINT) from None
        yield start, end
        position, count = end, count + 1
        if count > _MAX_NODES:
            raise DocumentInvalid(f"more than {_MAX_NODES:,} nodes", where=where, hint="record a shorter run")


def _schema(found: list[tuple[int, int | bytes]]) -> str:
    version = text_of(found, 1)
    for number, value in found:
        if number == 2 and isinstance(value, bytes):
            attribute = fields(value)
            if text_of(attribute, 1) == "schema":
                return str(attribute_value(attribute))[:40]
    return version[:40]


def _node(found: list[tuple[int, int | bytes]], row: int) -> ChakraNode:
    node = ChakraNode(whole_of(found, 1) or 0, text_of(found, 2), whole_of(found, 3) or 0, row)
    node.duration_us = whole_of(found, 7) or 0
    node.controls = numbers_of(found, 4)
    for number, value in found:
        if number == 10 and isinstance(value, bytes):
            attribute = fields(value)
            read = attribute_value(attribute)
            if read is not None:
                node.attributes[text_of(attribute, 1)] = read
        elif number == 8 and isinstance(value, bytes):
            inputs = fields(value)
            node.dims = _json_of(text_of(inputs, 2))
            node.types = _json_of(text_of(inputs, 3))
            if "attention" in node.name:
                node.concrete = _json_of(text_of(inputs, 1))
    node.is_host = node.attributes.get("is_cpu_op") is True or node.attributes.get("is_cpu_op") == 1
    return node


def _json_of(text: str) -> bytes:
    """A list as Python prints it, as JSON; empty where it is too long or no list."""
    if len(text) > _MAX_LITERAL or not text.startswith("["):
        return b""
    try:
        json.loads(text)
        return text.encode()
    except (ValueError, RecursionError):
        pass
    try:
        value = ast.literal_eval(text)
        return json.dumps(value).encode() if isinstance(value, list) else b""
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return b""


def json_graph(where: str, document: Any, imported: Imported) -> Graph:
    """Nodes of the JSON form.  Raises DocumentInvalid."""
    listed = document.get("workload_graph") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise DocumentInvalid("no Chakra graph: workload_graph is missing", where=where, hint=_HINT)
    graph = Graph("json")
    for row, raw in enumerate(listed):
        node = _json_node(raw, row) if isinstance(raw, dict) else None
        if node is not None:
            graph.nodes.append(node)
        elif len(imported.bad_rows) < 1000:
            imported.bad(f"workload_graph/{row}", "not a node: Id, Name, NodeType or runtime is missing or wrong")
    return graph


def _json_node(raw: dict[str, Any], row: int) -> ChakraNode | None:
    plain = {key.casefold(): value for key, value in raw.items()}
    identity, name, kind = plain.get("id"), plain.get("name"), plain.get("nodetype")
    runtime = plain.get("runtime", 0)
    if not (_is_whole(identity) and isinstance(name, str) and _is_whole(kind) and _is_whole(runtime)):
        return None
    controls: object = plain.get("ctrldeps", plain.get("ctrl_deps", []))
    node = ChakraNode(identity, name, kind, row, runtime)
    node.controls = list(filter(_is_whole, controls)) if isinstance(controls, list) else []
    node.is_host = plain.get("is_cpu_op") in (True, 1, "true")
    for key in ("comm_type", "comm_size", "pg_name", "tid"):
        value = plain.get(key)
        if isinstance(value, (int, str)):
            node.attributes[key] = value
    return node


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62
