"""Chakra graphs written byte by byte: the protobuf wire format from its specification."""

from __future__ import annotations

VARINT, BYTES = 0, 2


def varint(value: int) -> bytes:
    """A whole number, seven bits a byte, smallest first; negative ones as 64-bit two's complement."""
    value &= (1 << 64) - 1
    result = bytearray()
    while value > 0x7F:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*result, value])


def number(field: int, value: int) -> bytes:
    """A varint field."""
    return varint(field << 3 | VARINT) + varint(value)


def text(field: int, value: str | bytes) -> bytes:
    """A field of bytes, text or an embedded message."""
    raw = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | BYTES) + varint(len(raw)) + raw


def message(content: bytes) -> bytes:
    """A message with its length before it."""
    return varint(len(content)) + content


def metadata(schema: str = "1.1.0-chakra.0.0.4") -> bytes:
    """The first message of a file that the converter wrote."""
    return message(text(2, text(1, "schema") + text(29, schema)))


def node(
    identity: int, name: str, kind: int = 4, duration_us: int = 0, parent: int | None = None, host: bool = False,
    shapes: str = "", types: str = "", **whole: int,
) -> bytes:  # fmt: skip
    """One node; further arguments are int64 attributes."""
    content = number(1, identity) + text(2, name) + number(3, kind)
    if parent is not None:
        content += text(4, varint(parent))
    if duration_us:
        content += number(7, duration_us)
    if shapes:
        content += text(8, text(2, shapes) + text(3, types))
    content += text(10, text(1, "is_cpu_op") + number(27, int(host)))
    for key, value in whole.items():
        content += text(10, text(1, key) + number(9, value))
    return message(content)
