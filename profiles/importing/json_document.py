"""Large JSON files of tools: decoded at once into plain data or typed records, within limits.

Strict RFC 8259 (no ``NaN``, no comments); fields that a record does not name are skipped without being built, so a
trace of hundreds of megabytes stays small.  ``profiles.safe_json`` is for documents that users write.
"""

from __future__ import annotations

import re
from typing import TypeVar

from profiles.errors import DocumentInvalid
from profiles.importing.source_file import SourceFile

MAX_JSON_BYTES = 2 << 30
_BYTE = re.compile(r"\(byte (\d+)\)")

Record = TypeVar("Record")


def decode_json(file: SourceFile, kind: type[Record], limit_bytes: int = MAX_JSON_BYTES) -> Record:
    """The document as ``kind`` (``dict``, ``list`` or a ``msgspec.Struct``).  Raises DocumentInvalid with the byte."""
    import msgspec

    raw = file.read_bytes(limit_bytes).removeprefix(b"\xef\xbb\xbf")
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raw = raw.decode("utf-16", errors="replace").encode()
    if not raw.strip():
        raise DocumentInvalid("the file is empty", where=file.where, hint="check that the profiler wrote to it")
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        hint = "check that this is the file that the tool wrote"
        raise DocumentInvalid(f"the JSON is not of the expected form: {error}", where=file.where, hint=hint) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        found = _BYTE.search(str(error))
        where = f"{file.where}, byte {found.group(1)}" if found else file.where
        hint = "the file may be cut off: copy it again, or let the profiler finish writing"
        raise DocumentInvalid(f"not valid JSON: {error}", where=where, hint=hint) from None
