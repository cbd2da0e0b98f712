"""Chakra execution graphs: protobuf ``.et`` files, their JSON form, or either in a tar archive (plain or gzip).

Recognised by a varint-delimited ``GlobalMetadata`` with a version or a schema, followed by a ``Node``; by the key
``workload_graph`` in JSON; by such members in an archive.  A node of a run holds the microseconds that it took
(whole: kernels under 1 us count as 0 and are left out); graphs made for simulators hold none and are refused.

Sizes: ``comm_size`` is bytes of the input tensors on one rank.  That is our size for all collectives but all_gather,
whose output needs the group size (``--set group_size=8``); graphs do not say it.  Durations include waiting.
Source: mlcommons/chakra schema/protobuf/et_def.proto, src/converter/pytorch_converter.py, src/feeder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiles.importers.chakra.wire import WireError, delimited, fields, text_of
from profiles.importing.format import Format, ReadOptions
from profiles.importing.tar_members import first_members, is_tar

if TYPE_CHECKING:
    from profiles.importing.imported import Imported
    from profiles.importing.source_file import Head, SourceFile


def matches(head: Head) -> bool:
    """Whether the head (or a member of the archive) is a Chakra graph."""
    if is_tar(head):
        members = first_members(head)
        return any(is_graph(content) or is_json_graph(content) for _, content in members)
    return is_json_graph(head.raw) or is_graph(head.raw)


def is_json_graph(raw: bytes) -> bool:
    """Whether it is the JSON form."""
    start = raw[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    return start.startswith(b"{") and b'"workload_graph"' in raw[:65536] and b'"NodeType"' in raw


def is_graph(raw: bytes) -> bool:
    """Whether it begins with Chakra's metadata message and, if there is more, a node with a known type."""
    try:
        start, end = delimited(raw, 0)
        metadata = fields(raw[start:end])
    except WireError:
        return False
    if not metadata or any(number not in (1, 2) or not isinstance(value, bytes) for number, value in metadata):
        return False
    names = [text_of(fields_or_none(value), 1) for number, value in metadata if number == 2]
    version = [value for number, value in metadata if number == 1]
    if not (version and version[0][:1].isdigit()) and "schema" not in names:  # type: ignore[index]
        return False
    return end == len(raw) or _is_node(raw, end)


def fields_or_none(value: object) -> list[tuple[int, int | bytes]]:
    """Fields of an embedded message; none where it is no message."""
    try:
        return fields(value) if isinstance(value, bytes) else []
    except WireError:
        return []


def _is_node(raw: bytes, position: int) -> bool:
    try:
        start, end = delimited(raw, position)
        node = dict(fields(raw[start:end]))
    except WireError:
        # The head may end inside the first node.
        return position + 10 < len(raw) and raw[position + 1 : position + 3] != b""
    return isinstance(node.get(2), bytes) and node.get(3, 0) in range(11)


def read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    """Operators and collectives of the graphs.  Raises DocumentInvalid, also for graphs without times."""
    from profiles.importers.chakra.reading import read_graphs

    return read_graphs(files, options)


FORMAT = Format(name="chakra", title="Chakra execution graph (protobuf, JSON, archives)", matches=matches, read=read)
