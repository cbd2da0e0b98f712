"""Does memory that a search frees stay with its process?  It does here: the next step of the search takes it again.

A search takes and frees the same megabytes thousands of times.  The C library's defaults give them back to the kernel
each time, which hands them out again page by page, cleared.
"""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
KEPT_BYTES = 256 * 2**20
"""Freed memory beyond this goes back to the kernel all the same."""
LARGEST_BYTES = 32 * 2**20
"""Larger pieces are always mapped apart: the most that glibc accepts."""


def keep_freed_memory() -> bool:
    """Whether the C library knows these settings (glibc does; another may not, and is left as it is)."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGEST_BYTES) and mallopt(M_TRIM_THRESHOLD, KEPT_BYTES))
