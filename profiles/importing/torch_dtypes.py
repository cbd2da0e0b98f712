"""PyTorch's number formats ("c10::BFloat16", "Half", "Tensor(float)"), and the bytes of one element.

Three spellings are in use: C++ type names (profiler shapes), ScalarType names (``Float``, ``BFloat16``: collectives)
and TorchScript types (``Tensor(c10::Half)``: execution traces).  All become the short names that
plans use (bf16, fp32).
Source: pytorch/pytorch c10/core/ScalarType.h.
"""

from __future__ import annotations

_SHORT: dict[str, tuple[str, int]] = {
    "double": ("fp64", 8),
    "float64": ("fp64", 8),
    "float": ("fp32", 4),
    "float32": ("fp32", 4),
    "half": ("fp16", 2),
    "float16": ("fp16", 2),
    "bfloat16": ("bf16", 2),
    "float8_e4m3fn": ("fp8_e4m3", 1),
    "float8_e4m3fnuz": ("fp8_e4m3", 1),
    "float8_e5m2": ("fp8_e5m2", 1),
    "float8_e5m2fnuz": ("fp8_e5m2", 1),
    "long": ("int64", 8),
    "long int": ("int64", 8),
    "long long": ("int64", 8),
    "int64": ("int64", 8),
    "int": ("int32", 4),
    "int32": ("int32", 4),
    "short": ("int16", 2),
    "short int": ("int16", 2),
    "char": ("int8", 1),
    "signed char": ("int8", 1),
    "byte": ("uint8", 1),
    "unsigned char": ("uint8", 1),
    "bool": ("bool", 1),
    "complexfloat": ("complex64", 8),
    "complex<float>": ("complex64", 8),
    "complexdouble": ("complex128", 16),
    "complex<double>": ("complex128", 16),
    "uint16": ("uint16", 2),
    "uint32": ("uint32", 4),
    "uint64": ("uint64", 8),
}


def torch_dtype(name: object) -> str:
    """Short name of a type; empty for scalars, lists and unknown ones."""
    return _SHORT.get(_plain(name), ("", 0))[0]


def torch_element_bytes(name: object) -> int | None:
    """Bytes of one element; None for an unknown type."""
    return _SHORT.get(_plain(name), ("", None))[1]


def _plain(name: object) -> str:
    if not isinstance(name, str) or len(name) > 80:
        return ""
    plain = name.strip().casefold()
    if plain.startswith("tensor(") and plain.endswith(")"):
        plain = plain[7:-1]
    return plain.removeprefix("torch.").removeprefix("c10::")
