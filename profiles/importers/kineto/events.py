"""The events of a file: Kineto's JSON decoded into typed records, only the fields that are used.

Dimensions, types and values of arguments stay raw bytes: most calls repeat, and each different text is decoded once.
Repaired before a second try: bare backslashes in names, control characters in strings, ``nan`` and ``inf``, bytes that
are not UTF-8.  Several documents one after the other are separate traces.  An event of a wrong form is a bad row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from profiles.errors import DocumentInvalid
from profiles.importers.kineto.json_text import repaired_json
from profiles.importing.imported import Imported

_EMPTY = msgspec.Raw(b"")
_MAX_DOCUMENTS = 256
_MAX_BAD_EVENTS = 1000
_BYTE = re.compile(r"\(byte (\d+)\)")


class Arguments(msgspec.Struct, gc=False):
    """The part of ``args`` that is used, under all the names that it has had."""

    external_id: Any = msgspec.field(name="External id", default=None)
    external_id_old: Any = msgspec.field(name="external id", default=None)
    correlation: Any = msgspec.field(name="correlation", default=None)
    sequence_number: Any = msgspec.field(name="Sequence number", default=None)
    forward_thread: Any = msgspec.field(name="Fwd thread id", default=None)
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=_EMPTY)
    dims_old: msgspec.Raw = msgspec.field(name="Input dims", default=_EMPTY)
    types: msgspec.Raw = msgspec.field(name="Input type", default=_EMPTY)
    strides: msgspec.Raw = msgspec.field(name="Input Strides", default=_EMPTY)
    concrete: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=_EMPTY)
    device: Any = None
    grid: Any = None
    num_bytes: Any = msgspec.field(name="bytes", default=None)
    from_device: Any = msgspec.field(name="fromDevice", default=None)
    to_device: Any = msgspec.field(name="toDevice", default=None)
    graph_node: Any = msgspec.field(name="graph node id", default=None)
    collective: Any = msgspec.field(name="Collective name", default=None)
    in_elements: Any = msgspec.field(name="In msg nelems", default=None)
    out_elements: Any = msgspec.field(name="Out msg nelems", default=None)
    group_size: Any = msgspec.field(name="Group size", default=None)
    dtype: Any = None
    in_split: Any = msgspec.field(name="In split size", default=None)
    group_name: Any = msgspec.field(name="Process Group Name", default=None)
    group_description: Any = msgspec.field(name="Process Group Description", default=None)
    group_ranks: Any = msgspec.field(name="Process Group Ranks", default=None)
    sequence: Any = msgspec.field(name="Seq", default=None)
    source_rank: Any = msgspec.field(name="Src Rank", default=None)
    target_rank: Any = msgspec.field(name="Dst Rank", default=None)
    total_allocated: Any = msgspec.field(name="Total Allocated", default=None)
    total_reserved: Any = msgspec.field(name="Total Reserved", default=None)
    device_type: Any = msgspec.field(name="Device Type", default=None)
    device_id: Any = msgspec.field(name="Device Id", default=None)

    @property
    def link(self) -> object:
        """The id that joins a kernel and the operator that launched it."""
        return self.external_id if self.external_id is not None else self.external_id_old


class Event(msgspec.Struct, gc=False):
    """One trace event.  ``ts`` and ``dur`` are microseconds."""

    ph: Any = None
    cat: Any = None
    name: Any = None
    ts: Any = None
    dur: Any = None
    pid: Any = None
    tid: Any = None
    args: Arguments | None = None


class Document(msgspec.Struct):
    """One trace file: the head as Kineto writes it, and the events."""

    events: list[Event] = msgspec.field(name="traceEvents", default_factory=list)
    device_properties: Any = msgspec.field(name="deviceProperties", default=None)
    distributed_info: Any = msgspec.field(name="distributedInfo", default=None)
    base_time_ns: Any = msgspec.field(name="baseTimeNanoseconds", default=None)
    cuda_runtime_version: Any = None
    cuda_driver_version: Any = None
    hip_runtime_version: Any = None
    hip_driver_version: Any = None
    torch_version: Any = None
    pytorch_version: Any = None
    record_shapes: Any = None


class _LooseDocument(Document):
    events: list[msgspec.Raw] = msgspec.field(name="traceEvents", default_factory=list)  # type: ignore[assignment]


def documents(where: str, content: bytes, imported: Imported) -> Iterator[Document]:
    """The traces in a text, usually one.  Raises DocumentInvalid with the byte where the JSON breaks off."""
    if not content.strip():
        raise DocumentInvalid("the file is empty", where=where, hint="check that the profiler wrote to it")
    offset = 0
    for _ in range(_MAX_DOCUMENTS):
        rest = memoryview(content)[offset:]
        try:
            found, end = _decode(rest, imported), None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
            end = _end_of_first(error, rest)
            if end is None:
                raise _broken(where, error, offset, len(content)) from None
            found = _decode_part(where, rest[:end], imported, offset)
        yield found
        if end is None:
            return
        offset += end
    raise DocumentInvalid(f"the file holds more than {_MAX_DOCUMENTS} traces", where=where, hint="split it")


def _decode_part(where: str, part: memoryview, imported: Imported, offset: int) -> Document:
    try:
        return _decode(part, imported)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise _broken(where, error, offset, offset + len(part)) from None


def _decode(raw: memoryview, imported: Imported) -> Document:
    try:
        return _decode_once(raw, imported)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if "truncated" in str(error) or "trailing characters" in str(error):
            raise
        repaired = repaired_json(bytes(raw))
        if repaired == raw:
            raise
    found = _decode_once(memoryview(repaired), imported)
    if not any(flag.code == "json-repaired" for flag in imported.flags):
        imported.flag("json-repaired", "the trace is not valid JSON (bare backslashes or nan); it was repaired")
    return found


def _decode_once(raw: memoryview, imported: Imported) -> Document:
    is_list = bytes(raw[:64]).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"["
    try:
        if is_list:
            return Document(events=msgspec.json.decode(raw, type=list[Event]))
        return msgspec.json.decode(raw, type=Document)
    except msgspec.ValidationError:
        return _decode_loosely(raw, is_list, imported)


def _decode_loosely(raw: memoryview, is_list: bool, imported: Imported) -> Document:
    """Event by event, so that one of a wrong form costs itself only."""
    if is_list:
        document: Document = _LooseDocument(events=msgspec.json.decode(raw, type=list[msgspec.Raw]))
    else:
        document = msgspec.json.decode(raw, type=_LooseDocument)
    events: list[Event] = []
    decoder = msgspec.json.Decoder(Event)
    bad = 0
    for index, each in enumerate(document.events):
        try:
            events.append(decoder.decode(each))  # type: ignore[arg-type]
        except msgspec.DecodeError as error:
            bad += 1
            events.append(Event())
            if bad <= _MAX_BAD_EVENTS:
                imported.bad(f"traceEvents/{index}", f"not an event as Kineto writes it: {error}", "leave it out")
    document.events = events
    return document


def _end_of_first(error: Exception, raw: memoryview) -> int | None:
    """Where the first of several documents ends, if that is what the error means."""
    if "trailing characters" not in str(error):
        return None
    found = _BYTE.search(str(error))
    position = int(found.group(1)) if found else 0
    while 0 < position <= len(raw) and bytes(raw[position - 1 : position]) not in (b"}", b"]"):
        position -= 1
    follows = bytes(raw[position : position + 4096]).lstrip()[:1]
    return position if 0 < position < len(raw) and follows in (b"{", b"[") else None


def _broken(where: str, error: Exception, start: int, end: int) -> DocumentInvalid:
    text = str(error)
    if "truncated" in text:
        return DocumentInvalid(
            f"the trace breaks off at byte {end:,}",
            where=f"{where}:byte {end}",
            hint="the profiler was stopped while it wrote, or the copy is incomplete; record or copy it again",
        )
    found = _BYTE.search(text)
    at = f"{where}:byte {start + int(found.group(1))}" if found else where
    what = "nested too deeply" if isinstance(error, RecursionError) else _BYTE.sub("", text).strip()
    return DocumentInvalid(f"not a readable trace: {what}", where=at, hint="record the trace again")
