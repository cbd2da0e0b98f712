"""The kind of operator that a device kernel belongs to, judged by its name.

``kernel_class`` answers with an operator class of ``profiles.observations.records``, or with ``collective`` for a
communication kernel, ``other`` for reductions, sorts and index shuffling, and ``kernel`` where the name says nothing.
A name never tells a shape: a kernel known by name only counts towards coverage and is no entry to look up.

The rules (``kernel_names.toml``) are asked in order; the first that fits wins.  The order matters because demangled
names carry their template arguments: flash attention mentions ``cutlass``, a matmul may end in ``relu``, an
element-wise copy names both.
Families: cuBLAS / cuBLASLt (``ampere_*gemm``, ``nvjet_*``, ``cutlass*``), rocBLAS / hipBLASLt (``Cijk_*``), PyTorch
ATen, Apex and Transformer Engine, Triton and Inductor, flash-attn, AOTriton, Composable Kernel, CANN operator types.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from profiles.shipped_tables import shipped_table

_LONGEST = 4096


@cache
def _rules(kind: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Names and compiled patterns of ``kernel_classes`` or ``collectives``."""
    rows = shipped_table("profiles.importing", "kernel_names.toml")[kind]
    return tuple((row["name"], re.compile("|".join(row["patterns"]))) for row in rows)


@lru_cache(maxsize=16384)
def kernel_class(name: str) -> str:
    """Operator class of a kernel; ``kernel`` where its name does not say."""
    plain = name[:_LONGEST].casefold().strip()
    return next((found for found, pattern in _rules("kernel_classes") if pattern.search(plain)), "kernel")


def collective_operation(name: str) -> str:
    """Which collective a communication kernel or call performs: ``all_reduce``, ...; ``unknown`` if it does not say."""
    plain = name[:_LONGEST].casefold()
    return next((found for found, pattern in _rules("collectives") if pattern.search(plain)), "unknown")
