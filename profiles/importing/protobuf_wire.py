"""The fields of a protobuf message: the wire format alone, without schemas or generated code.

A message is a sequence of (tag, value): varint (wire type 0), 8 bytes (1), length and bytes (2), 4 bytes (5); groups
(3, 4) are not used by any format read here.  Everything is checked against the end of the message: a damaged file
raises WireError with the byte at which it stops making sense.
Source: protobuf.dev, "Encoding".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_LONGEST_VARINT = 10

Value = int | memoryview


class WireError(ValueError):
    """The bytes are no protobuf message."""


def fields(message: memoryview) -> Iterator[tuple[int, int, Value]]:
    """(Field number, wire type, value) one after the other; 8 and 4 byte values as memory.  Raises WireError."""
    at, end = 0, len(message)
    while at < end:
        start = at
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise WireError(f"byte {start}: field number 0")
        if kind == 0:
            value, at = _varint(message, at)
            yield number, kind, value
            continue
        if kind == 2:
            size, at = _varint(message, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise WireError(f"byte {start}: wire type {kind}")
        if at + size > end:
            raise WireError(f"byte {start}: a value of {size:,} bytes in a message of {end:,}")
        yield number, kind, message[at : at + size]
        at += size


def signed(value: Value) -> int:
    """A varint as a signed 64-bit integer.  Raises WireError for another kind of value."""
    if not isinstance(value, int):
        raise WireError("bytes where a number is expected")
    return value - (1 << 64) if value >> 63 else value


def double(value: Value) -> float:
    """Eight bytes as a float.  Raises WireError for another kind of value."""
    if not isinstance(value, memoryview) or len(value) != 8:
        raise WireError("no 8 bytes where a float is expected")
    return float(struct.unpack("<d", value)[0])


def text(value: Value, longest: int = 1 << 20) -> str:
    """Bytes as text, cut at ``longest``.  Raises WireError for a number."""
    if not isinstance(value, memoryview):
        raise WireError("a number where text is expected")
    return bytes(value[:longest]).decode("utf-8", errors="replace")


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    for position in range(at, min(at + _LONGEST_VARINT, len(message))):
        byte = message[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, position + 1
        shift += 7
    raise WireError(f"byte {at}: a number that does not end")
