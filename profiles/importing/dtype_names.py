"""Number formats by name (``half``, ``bfloat16``, ``float8_e4m3``), and the bytes of one element.

One name each: fp64, fp32, tf32, fp16, bf16, fp8_e4m3, fp8_e5m2, int64 ... uint8.  A name that is not known is kept as
it is: it may come from a newer version of the tool.
"""

from __future__ import annotations

_SAME: dict[str, str] = {
    "double": "fp64",
    "float64": "fp64",
    "f64": "fp64",
    "float": "fp32",
    "float32": "fp32",
    "f32": "fp32",
    "half": "fp16",
    "float16": "fp16",
    "f16": "fp16",
    "bfloat16": "bf16",
    "bfloat": "bf16",
    "bfp16": "bf16",
    "f8e4m3": "fp8_e4m3",
    "f8e5m2": "fp8_e5m2",
    "float8e4m3": "fp8_e4m3",
    "float8e5m2": "fp8_e5m2",
    "float8_e4m3": "fp8_e4m3",
    "float8_e4m3fn": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
    "fp8_e4m3": "fp8_e4m3",
    "fp8_e5m2": "fp8_e5m2",
    "char": "int8",
    "int": "int32",
}
_BYTES: dict[str, int] = {
    "fp64": 8,
    "fp32": 4,
    "tf32": 4,
    "fp16": 2,
    "bf16": 2,
    "fp8_e4m3": 1,
    "fp8_e5m2": 1,
    "fp8": 1,
    "int64": 8,
    "uint64": 8,
    "int32": 4,
    "uint32": 4,
    "int16": 2,
    "uint16": 2,
    "int8": 1,
    "uint8": 1,
}


def dtype_of(name: str) -> str:
    """The common name of a number format; unknown names in lower case, unchanged."""
    plain = name.strip().casefold()
    return _SAME.get(plain, plain)


def element_bytes(name: str) -> int | None:
    """Bytes of one element; None for an unknown number format."""
    return _BYTES.get(dtype_of(name))
