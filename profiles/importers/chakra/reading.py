"""All observations of a Chakra graph, or of every graph in an archive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profiles.errors import DocumentInvalid
from profiles.importers.chakra import is_graph, is_json_graph
from profiles.importers.chakra.nodes import COLLECTIVE, RECEIVE, SEND, ChakraNode, Graph, json_graph, protobuf_graph
from profiles.importers.kineto.json_text import decoded
from profiles.importers.kineto.operator_graph import GraphNode, graph_operators
from profiles.importers.kineto.operators import OperatorSamples
from profiles.importers.kineto.sample_observations import operator_observations
from profiles.importing.duration_statistics import Durations
from profiles.importing.environments import environment_of, given_whole
from profiles.importing.format import ReadOptions
from profiles.importing.imported import Batch, Imported
from profiles.importing.redaction import Redactor
from profiles.importing.source_file import SourceFile
from profiles.importing.tar_members import is_tar, tar_members
from profiles.observations.records import CollectiveObservation, CollectiveOperation

_OPERATIONS: dict[int, CollectiveOperation] = {
    0: "all_reduce",
    1: "reduce",
    2: "all_gather",
    3: "gather",
    4: "scatter",
    5: "broadcast",
    6: "all_to_all",
    7: "reduce_scatter",
    8: "reduce_scatter",
    9: "barrier",
}
_MAX_BYTES = 1 << 30
_NS_PER_US = 1000
_Key = tuple[CollectiveOperation, int]


class _Findings:
    """State over the graphs of one source."""

    def __init__(self, options: ReadOptions) -> None:
        self.imported = Imported(tool="chakra")
        self.group_size = given_whole(options, "group_size")
        self.samples = OperatorSamples()
        self.collectives: dict[_Key, Durations] = {}
        self.rows: dict[_Key, int] = {}
        self.num_nodes = 0
        self.num_communications = 0

    def add(self, graph: Graph) -> None:
        self.imported.tool_version = self.imported.tool_version or graph.schema
        self.num_nodes += len(graph.nodes)
        operators = []
        for node in graph.nodes:
            if node.kind in (SEND, RECEIVE, COLLECTIVE) and not node.is_host:
                self._communication(node)
            else:
                operators.append(_graph_node(node))
        found, _ = graph_operators(operators)
        self.samples.merge(found)

    def _communication(self, node: ChakraNode) -> None:
        self.num_communications += 1
        kind, size = node.attributes.get("comm_type"), node.attributes.get("comm_size")
        operation = _OPERATIONS.get(kind) if isinstance(kind, int) else None
        if node.kind != COLLECTIVE:
            operation = "send_recv"
        if node.duration_us <= 0:
            self.imported.skip("communication without a time")
            return
        if operation is None or not isinstance(size, int) or isinstance(size, bool) or not 0 < size < 2**50:
            self.imported.skip("communication without type or size")
            return
        if operation == "all_gather":
            if self.group_size is None:
                self.imported.skip("all_gather of unknown group size (its output cannot be told: --set group_size=N)")
                return
            size *= self.group_size
        key = (operation, size)
        self.collectives.setdefault(key, Durations()).add(node.duration_us * _NS_PER_US)
        self.rows.setdefault(key, node.row)

    def finish(self, file: SourceFile, options: ReadOptions) -> Imported:
        imported = self.imported
        batch = Batch(environment_of(options))
        batch.operators = operator_observations(self.samples, Redactor())
        batch.collectives = [self._observation(key, durations) for key, durations in self.collectives.items()]
        imported.facts["num_nodes"] = self.num_nodes
        if not batch.num_observations:
            raise DocumentInvalid(
                f"the graph holds {self.num_nodes:,} nodes ({self.num_communications:,} of communication) but no time "
                "of an operator or collective",
                where=file.where,
                hint="graphs written for a simulator hold no measurement; convert the trace of a run",
            )
        imported.flag("whole-microseconds", "times of a Chakra graph are whole microseconds: short kernels are coarse")
        if batch.collectives:
            imported.flag("waiting-included", "times of collectives include waiting for the last rank: upper bounds")
            if self.group_size is None:
                imported.flag("group-unknown", "the graph does not say over how many ranks a collective ran")
        imported.batches = [batch]
        return imported

    def _observation(self, key: _Key, durations: Durations) -> CollectiveObservation:
        operation, size = key
        return CollectiveObservation(
            operation=operation,
            size_bytes=size,
            group_size=2 if operation == "send_recv" else self.group_size,
            timing=durations.timing(1e9),
            launch="in_situ",
            detail={"method": "waiting-included"},
            row=self.rows[key],
        )


def _graph_node(node: ChakraNode) -> GraphNode:
    sequence, thread = node.attributes.get("seq_id"), node.attributes.get("tid")
    return GraphNode(
        identity=node.identity,
        name=node.name,
        parent=node.controls[0] if node.controls else None,
        is_device=not node.is_host,
        duration_ns=node.duration_us * _NS_PER_US if node.duration_us < 10**12 else 0,
        row=node.row,
        thread=thread if isinstance(thread, int) else 0,
        sequence=sequence if isinstance(sequence, int) and sequence >= 0 else None,
        is_annotation=node.attributes.get("scope") == 7,
        dims=node.dims,
        types=node.types,
        concrete=node.concrete,
    )


def read_graphs(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Read one source.  Raises DocumentInvalid."""
    (file,) = files
    findings = _Findings(options)
    for where, raw in _contents(file):
        if is_json_graph(raw):
            findings.add(json_graph(where, decoded(raw, where), findings.imported))
        else:
            findings.add(protobuf_graph(where, raw, findings.imported))
    return findings.finish(file, options)


def _contents(file: SourceFile) -> Iterator[tuple[str, bytes]]:
    if not is_tar(file.head()):
        raw = file.read_bytes(_MAX_BYTES)
        if not raw:
            raise DocumentInvalid("the file is empty", where=file.where, hint="convert the trace again")
        yield file.where, raw
        return
    for name, raw in tar_members(file):
        if is_json_graph(raw) or is_graph(raw):
            yield f"{file.where}/{name}", raw
