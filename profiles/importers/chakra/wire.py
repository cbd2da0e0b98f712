"""The fields of a protobuf message: the wire format itself, within limits, without generated code.

A message is a row of (tag, value): tag = field number x 8 + wire type; types 0 varint, 1 eight bytes, 2 length and
bytes, 5 four bytes.  Groups (3, 4) are refused: no Chakra schema has them.
Source: protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct

MAX_FIELDS = 1_000_000
_MAX_VARINT_BYTES = 10


class WireError(ValueError):
    """The bytes are no protobuf message; ``position`` says where."""

    def __init__(self, what: str, position: int) -> None:
        super().__init__(what)
        self.position = position


def varint(raw: bytes, position: int) -> tuple[int, int]:
    """(value, position after it).  Raises WireError."""
    result = 0
    for count in range(_MAX_VARINT_BYTES):
        if position + count >= len(raw):
            raise WireError("the data ends inside a number", position)
        byte = raw[position + count]
        result |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return result & 0xFFFF_FFFF_FFFF_FFFF, position + count + 1
    raise WireError("a number is longer than ten bytes", position)


def delimited(raw: bytes, position: int) -> tuple[int, int]:
    """Start and end of a message that its length precedes.  Raises WireError."""
    length, start = varint(raw, position)
    if length > len(raw) - start:
        raise WireError(f"a message of {length:,} bytes goes beyond the end", position)
    return start, start + length


def fields(raw: bytes) -> list[tuple[int, int | bytes]]:
    """Field numbers and values in order; fixed-size values stay bytes.  Raises WireError."""
    found: list[tuple[int, int | bytes]] = []
    position = 0
    while position < len(raw):
        tag, position = varint(raw, position)
        number, kind = tag >> 3, tag & 7
        value: int | bytes
        if number == 0 or len(found) >= MAX_FIELDS:
            raise WireError("a field has the number 0, or there are too many", position)
        if kind == 0:
            value, position = varint(raw, position)
        elif kind == 2:
            start, end = delimited(raw, position)
            value, position = raw[start:end], end
        elif kind in (1, 5):
            width = 8 if kind == 1 else 4
            if position + width > len(raw):
                raise WireError("the data ends inside a number", position)
            value, position = raw[position : position + width], position + width
        else:
            raise WireError(f"wire type {kind} is not known", position)
        found.append((number, value))
    return found


def text_of(found: list[tuple[int, int | bytes]], number: int) -> str:
    """The text in a field; empty where there is none."""
    value = next((value for key, value in found if key == number), b"")
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def whole_of(found: list[tuple[int, int | bytes]], number: int) -> int | None:
    """The number in a varint field; None where there is none."""
    return next((value for key, value in found if key == number and isinstance(value, int)), None)


def numbers_of(found: list[tuple[int, int | bytes]], number: int) -> list[int]:
    """All numbers of a repeated field, packed or not.  Raises WireError."""
    result: list[int] = []
    for key, value in found:
        if key != number:
            continue
        if isinstance(value, int):
            result.append(value)
            continue
        position = 0
        while position < len(value):
            each, position = varint(value, position)
            result.append(each)
    return result


def attribute_value(found: list[tuple[int, int | bytes]]) -> int | float | str | bool | None:
    """The single value of an ``AttributeProto`` (fields 3 to 31, odd); None for lists and absent ones."""
    for number, value in found:
        if number == 27 and isinstance(value, int):
            return bool(value)
        if number in (7, 9) and isinstance(value, int):
            return value - (1 << 64) if value >= 1 << 63 else value
        if number in (11, 13) and isinstance(value, int):
            return value
        if number in (15, 17) and isinstance(value, int):
            return (value >> 1) ^ -(value & 1)
        if number in (19, 21) and isinstance(value, bytes):
            return int.from_bytes(value, "little")
        if number in (23, 25) and isinstance(value, bytes):
            return int.from_bytes(value, "little", signed=True)
        if number == 29 and isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if number == 3 and isinstance(value, bytes) and len(value) == 8:
            return float(struct.unpack("<d", value)[0])
        if number == 5 and isinstance(value, bytes) and len(value) == 4:
            return float(struct.unpack("<f", value)[0])
    return None
