"""The traces in a file: the file itself, or the members of a tar archive (each plain or gzip), one by one."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath

from profiles.errors import DocumentInvalid
from profiles.importers.kineto.json_text import without_mark
from profiles.importing.source_file import Head, SourceFile
from profiles.importing.tar_members import MAX_MEMBER_BYTES, first_members, is_tar, tar_members

_GZIP = b"\x1f\x8b"
_AS_GZIP = 31
_HEAD_BYTES = 256 << 10


def trace_texts(file: SourceFile) -> Iterator[tuple[str, str, bytes]]:
    """Name, place and content of every trace.  Raises DocumentInvalid."""
    if not is_tar(file.head()):
        yield file.name, file.where, without_mark(file.read_bytes())
        return
    for member, content in tar_members(file):
        name = PurePosixPath(member).name
        if name.endswith((".json", ".json.gz")):
            where = f"{file.where}/{member}"
            yield name, where, without_mark(_unpacked(content, where) if content[:2] == _GZIP else content)


def first_text(head: Head) -> str:
    """The beginning of the first JSON in the archive; empty where the head does not reach one."""
    for name, start in first_members(head):
        if not name.endswith((".json", ".json.gz")):
            continue
        try:
            packed = start[:2] == _GZIP
            text = zlib.decompressobj(_AS_GZIP).decompress(start, _HEAD_BYTES) if packed else start
        except zlib.error:
            return ""
        return text.decode("utf-8", "replace")
    return ""


def _unpacked(content: bytes, where: str) -> bytes:
    unpacker = zlib.decompressobj(_AS_GZIP)
    try:
        found = unpacker.decompress(content, MAX_MEMBER_BYTES)
    except zlib.error as error:
        hint = "copy the archive again"
        raise DocumentInvalid(f"the compressed data is damaged: {error}", where=where, hint=hint) from None
    if unpacker.unconsumed_tail:
        what = f"the content is larger than {MAX_MEMBER_BYTES:,} bytes"
        raise DocumentInvalid(what, where=where, hint="give the trace on its own")
    if not unpacker.eof:
        raise DocumentInvalid("the compressed data breaks off", where=where, hint="copy the archive again")
    return found
