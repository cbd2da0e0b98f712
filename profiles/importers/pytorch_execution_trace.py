"""PyTorch execution traces (ET): every operator with its shapes, as JSON, plain or gzip, alone or in a tar archive.

Recognised by ``"schema": "1.x.y"`` with ``"nodes"``.  Up to 1.0.1 a node is flat (``parent``, ``input_shapes``); from
1.0.2-chakra.0.0.4 it has ``ctrl_deps``, ``inputs {values, shapes, types}`` and a list of ``attrs``; from 1.1.0 the
metadata of collectives stands in ``attrs`` (``collective_name``, ``in_msg_nelems``), before that among the input values
of ``record_param_comms``.

A trace as PyTorch writes it holds no times: it is refused with what it does hold.  The linked form of Chakra
(``chakra_trace_link``: host trace and profiler trace joined) adds device nodes (``cat``, ``ts``, ``inclusive_dur`` in
us): that is what is imported.  Collectives include waiting for other ranks.
Source: pytorch/pytorch torch/csrc/profiler/standalone/execution_trace_observer.cpp; mlcommons/chakra trace_linker.py.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from profiles.errors import DocumentInvalid
from profiles.importing.environments import environment_of
from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.redaction import Redactor
from profiles.importing.source_file import Head, SourceFile
from profiles.importing.tar_members import first_members, is_tar, tar_members

if TYPE_CHECKING:
    from profiles.importers.kineto.collectives import CollectiveCall
    from profiles.importers.kineto.events import Arguments
    from profiles.importers.kineto.operator_graph import GraphNode

_SCHEMA = re.compile(r'"schema"\s*:\s*"\d+\.\d+\.\d+[^"]{0,40}"')
_DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
_MAX_TEXT_BYTES = 1 << 30
_HINT = "import the profiler (Kineto) trace of the same run, or the trace that chakra_trace_link makes of the two"


def matches(head: Head) -> bool:
    """Whether the head (or a member of the archive) is an execution trace."""
    if is_tar(head):
        return any(name.endswith(".json") and _is_trace(content.decode("utf-8", "replace"))
                   for name, content in first_members(head))  # fmt: skip
    return _is_trace(head.text)


def _is_trace(text: str) -> bool:
    start = text.lstrip("\ufeff \t\r\n")[:4096]
    return start.startswith("{") and bool(_SCHEMA.search(start)) and '"nodes"' in text and '"pid"' in start


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Operators and collectives of a linked trace.  Raises DocumentInvalid, also for a trace without times."""
    (file,) = files
    imported = Imported(tool="pytorch-execution-trace")
    findings = _Findings(imported)
    for where, content in _contents(file):
        findings.read(where, content)
    return findings.finish(file, options)


def _contents(file: SourceFile) -> Iterator[tuple[str, bytes]]:
    if not is_tar(file.head()):
        yield file.where, file.read_bytes(_MAX_TEXT_BYTES)
        return
    for name, content in tar_members(file):
        if name.endswith(".json"):
            yield f"{file.where}/{name}", content


@dataclass(slots=True)
class _Node:
    """The fields of a node of any schema version."""

    raw: dict[str, Any]
    attributes: dict[str, Any]

    def get(self, name: str) -> Any:
        """A field, or the attribute of that name."""
        return self.raw.get(name, self.attributes.get(name))

    def inputs(self, part: str) -> list[Any]:
        """``values``, ``shapes`` or ``types`` of the inputs."""
        nested = self.raw.get("inputs")
        if isinstance(nested, dict):
            found = nested.get(part)
        else:
            found = nested if part == "values" else self.raw.get(f"input_{part}")
        return found if isinstance(found, list) else []


class _Findings:
    """State over the traces of one file."""

    def __init__(self, imported: Imported) -> None:
        from profiles.importers.kineto.operators import OperatorSamples

        self.imported = imported
        self.samples = OperatorSamples()
        self.calls_with_shapes: set[tuple[str, bytes]] = set()
        self.nodes: list[GraphNode] = []
        self.calls: list[CollectiveCall] = []
        self.num_nodes = 0
        self.schema = ""

    def read(self, where: str, content: bytes) -> None:
        document = _document(where, content)
        self.schema = self.schema or str(document["schema"])[:40]
        self.nodes = []
        by_id: dict[int, _Node] = {}
        for row, raw in enumerate(document["nodes"]):
            self.num_nodes += 1
            node = _node(raw)
            identity = _whole(node.get("id")) if node is not None else None
            if node is None or identity is None or not isinstance(node.raw.get("name"), str):
                if len(self.imported.bad_rows) < 1000:
                    self.imported.bad(f"nodes/{row}", "a node without id and name", "leave it out")
                continue
            by_id[identity] = node
            self._take(node, identity, row, by_id)
        self._sum_up()

    def _sum_up(self) -> None:
        from profiles.importers.kineto.operator_graph import graph_operators

        found, _ = graph_operators(self.nodes)
        self.samples.merge(found)
        shaped = [node for node in self.nodes if node.name.startswith("aten::") and len(node.dims) > 2]
        self.calls_with_shapes |= {(node.name, node.dims) for node in shaped}

    def _take(self, node: _Node, identity: int, row: int, by_id: dict[int, _Node]) -> None:
        from profiles.importers.kineto.collectives import is_collective
        from profiles.importers.kineto.operator_graph import GraphNode

        name = node.raw["name"]
        parent = _whole(node.get("ctrl_deps")) if "ctrl_deps" in node.raw else _whole(node.get("parent"))
        is_device = node.get("cat") in _DEVICE_CATEGORIES
        duration = _duration_ns(node) if is_device else 0
        if duration is None:
            self.imported.bad(f"nodes/{row}", "inclusive_dur is not a time from 0", "leave the node out")
            return
        if is_device and is_collective(name, None):
            self._collective(node, by_id.get(parent) if parent is not None else None, duration, row)
            return
        sequence = _whole(node.get("seq_id"))
        self.nodes.append(
            GraphNode(
                identity=identity,
                name=name,
                parent=parent,
                is_device=is_device,
                duration_ns=duration,
                row=row,
                thread=_whole(node.get("tid")) or 0,
                sequence=sequence,
                is_annotation=node.get("scope") == 7,
                dims=_text(node.inputs("shapes")),
                types=_text(node.inputs("types")),
                concrete=_text(node.inputs("values")),
            )
        )

    def _collective(self, node: _Node, parent: _Node | None, duration_ns: int, row: int) -> None:
        from profiles.importers.kineto.collectives import collective_call

        arguments = _collective_arguments(parent if parent is not None else node)
        found = collective_call(node.raw["name"], None, arguments, (0, duration_ns), row)
        if isinstance(found, str):
            self.imported.skip(found)
        elif duration_ns > 0:
            self.calls.append(found)

    def finish(self, file: SourceFile, options: ReadOptions) -> Imported:
        from profiles.importers.kineto.rank_merge import collective_times
        from profiles.importers.kineto.sample_observations import collective_observations, operator_observations

        imported = self.imported
        imported.tool_version = self.schema
        imported.facts.update({"num_nodes": self.num_nodes, "schema": self.schema})
        batch = Batch(environment_of(options, framework="pytorch"))
        batch.operators = operator_observations(self.samples, Redactor())
        batch.collectives = collective_observations(collective_times({0: self.calls}), {})
        if not batch.num_observations:
            raise self._without_times(file)
        if batch.collectives:
            imported.flag("waiting-included", "times of collectives include waiting for the last rank: upper bounds")
        imported.batches = [batch]
        return imported

    def _without_times(self, file: SourceFile) -> DocumentInvalid:
        what = (
            f"the execution trace holds {self.num_nodes:,} nodes and shapes of {len(self.calls_with_shapes):,} "
            "different operator calls, but no time of any of them"
        )
        return DocumentInvalid(what, where=file.where, hint=_HINT)


def _document(where: str, content: bytes) -> dict[str, Any]:
    from profiles.importers.kineto.json_text import decoded

    document = decoded(content, where)
    if not isinstance(document, dict) or not isinstance(document.get("nodes"), list) or "schema" not in document:
        raise DocumentInvalid("no execution trace: schema or nodes are missing", where=where, hint=_HINT)
    return document


def _node(raw: object) -> _Node | None:
    if not isinstance(raw, dict):
        return None
    listed = raw.get("attrs")
    attributes = {
        each["name"]: each.get("value")
        for each in (listed if isinstance(listed, list) else [])
        if isinstance(each, dict) and isinstance(each.get("name"), str)
    }
    return _Node(raw, attributes)


def _collective_arguments(node: _Node) -> Arguments:
    """Metadata of a collective: attributes (from 1.1.0), else the input values of ``record_param_comms``."""
    from profiles.importers.kineto.events import Arguments

    if isinstance(node.get("collective_name"), str):
        return Arguments(
            collective=node.get("collective_name"), in_elements=node.get("in_msg_nelems"),
            out_elements=node.get("out_msg_nelems"), dtype=node.get("dtype"), group_size=node.get("pg_size"),
            group_name=node.get("pg_name"), in_split=node.get("in_split_size"),
        )  # fmt: skip
    values, types = node.inputs("values"), [str(each) for each in node.inputs("types")]
    called = next((each for each, kind in zip(values, types, strict=False) if kind == "String"), None)
    sent = _elements(node.inputs("shapes")[:1])
    size = _whole(values[-1]) if values and types and types[-1] == "Int" else None
    element = re.search(r"Tensor\(([\w:]+)\)", types[0]) if types else None
    return Arguments(
        collective=called, in_elements=sent, dtype=element.group(1) if element else None, group_size=size,
        out_elements=sent * size if sent is not None and size is not None else None,
    )  # fmt: skip


def _elements(shapes: list[Any]) -> int | None:
    """Elements of all tensors in nested lists of dimensions."""
    total, pending, seen = 0, list(shapes), 0
    while pending:
        each, seen = pending.pop(), seen + 1
        if not isinstance(each, list) or seen > 100_000:
            return None
        if each and all(isinstance(size, int) and 0 <= size < 2**40 for size in each):
            total += math.prod(each)
        else:
            pending.extend(each)
    return total or None


def _duration_ns(node: _Node) -> int | None:
    value = node.get("inclusive_dur")
    value = node.get("dur") if value is None else value
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e15:
        return None
    return round(value * 1000)


def _text(value: list[Any]) -> bytes:
    return json.dumps(value).encode() if value else b""


def _whole(value: object) -> int | None:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62 else None


FORMAT = Format(
    name="pytorch-execution-trace", title="PyTorch execution trace (linked with times)", matches=matches, read=read
)
