"""Number formats by name (``half``, ``bfloat16``, ``float8_e4m3``), and the bytes of one element.

One name each: fp64, fp32, tf32, fp16, bf16, fp8_e4m3, fp8_e5m2, int64 ... uint8.  A name that is not known is kept as
it is: it may come from a newer version of the tool.
"""

from __future__ import annotations

from profiles.shipped_tables import shipped_table

_FILE = ("profiles.importing", "dtype_names.toml")


def dtype_of(name: str) -> str:
    """The common name of a number format; unknown names in lower case, unchanged."""
    plain = name.strip().casefold()
    return str(shipped_table(*_FILE)["same"].get(plain, plain))


def element_bytes(name: str) -> int | None:
    """Bytes of one element; None for an unknown number format."""
    size: int | None = shipped_table(*_FILE)["bytes"].get(dtype_of(name))
    return size
