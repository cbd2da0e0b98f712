"""The members of a tar archive (plain or gzip): regular files, read one by one within limits, never unpacked.

Refused: links, devices, absolute paths, ``..`` in paths, more than ``MAX_MEMBERS`` entries, members above
``MAX_MEMBER_BYTES``.  Left out: folders and what macOS adds (``._name``, ``PaxHeader``).
"""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath

from profiles.errors import DocumentInvalid
from profiles.importing.source_file import Head, SourceFile

MAX_MEMBERS = 10_000
MAX_MEMBER_BYTES = 1 << 30
_MAGIC_AT = 257
_BLOCK = 512


def is_tar(head: Head) -> bool:
    """Whether the decompressed head is that of a tar archive."""
    return head.raw[_MAGIC_AT : _MAGIC_AT + 5] == b"ustar"


def first_members(head: Head, most: int = 64) -> list[tuple[str, bytes]]:
    """Names and (beginnings of) contents of the members that the head reaches."""
    found: list[tuple[str, bytes]] = []
    try:
        with tarfile.open(fileobj=io.BytesIO(head.raw), mode="r:") as archive:
            for _ in range(most):
                member = archive.next()
                if member is None:
                    break
                if member.isreg() and not _is_decoration(member.name):
                    found.append((member.name, head.raw[member.offset_data : member.offset_data + 65536]))
    except (tarfile.TarError, OSError, EOFError, ValueError, OverflowError):
        # The head ends in the middle of a member: what came before it counts.
        pass
    return found


def tar_members(file: SourceFile) -> Iterator[tuple[str, bytes]]:
    """Name and content of every regular file.  Raises DocumentInvalid."""
    try:
        with file.open() as stream, tarfile.open(fileobj=stream, mode="r|", bufsize=_BLOCK * 128) as archive:
            for number, member in enumerate(archive):
                if number >= MAX_MEMBERS:
                    raise _refused(file, f"more than {MAX_MEMBERS:,} entries", "give the files inside on their own")
                if member.isdir() or _is_decoration(member.name):
                    continue
                _check(file, member)
                content = archive.extractfile(member)
                if content is not None:
                    yield member.name, content.read(MAX_MEMBER_BYTES)
    except (tarfile.TarError, OSError, EOFError, zlib.error, ValueError, OverflowError) as error:
        raise _refused(file, f"it is damaged: {error}", "copy the archive again") from None


def _check(file: SourceFile, member: tarfile.TarInfo) -> None:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts:
        raise _refused(file, "an entry points outside of it", "unpack it yourself if you trust it")
    if not member.isreg():
        raise _refused(file, "it holds links or devices", "unpack it yourself if you trust it")
    if member.size > MAX_MEMBER_BYTES:
        raise _refused(file, f"an entry has {member.size:,} bytes", "give the file inside on its own")


def _is_decoration(name: str) -> bool:
    return PurePosixPath(name).name.startswith("._") or "PaxHeader" in name


def _refused(file: SourceFile, what: str, hint: str) -> DocumentInvalid:
    return DocumentInvalid(f"the archive cannot be read: {what}", where=file.where, hint=hint)
