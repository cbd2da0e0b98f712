"""How are the inner loops compiled?  Ahead of use, into a cache on disk, without Python's lock.

Numba compiles each kernel for the one signature that is written beside it when its module is imported; the machine
code is kept beside the source, or in the user's cache where that folder is read-only, or only in memory where nothing
may be written.  ``python -m solver.selection.compile_kernels`` fills the cache.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

OPTIONAL_OF_NUMBA = ("scipy", "cffi")
"""What Numba imports to support linear algebra and foreign functions; kernels use neither (0.15 s of a start)."""


@contextmanager
def _light_start() -> Iterator[None]:
    """Import without the optional packages, and without looking for garbage among what imports make."""
    absent = [name for name in OPTIONAL_OF_NUMBA if name not in sys.modules]
    collected = gc.isenabled()
    gc.disable()
    # None in sys.modules makes an import of the name fail, which is how Numba sees that a package is absent.
    sys.modules.update(dict.fromkeys(absent))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]
        if collected:
            gc.enable()


with _light_start():
    from numba import njit, types
    from numba.core.registry import cpu_target

    # What the first kernel would set up.
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()

Function = TypeVar("Function", bound=Callable[..., Any])

INT = types.int64
REAL = types.float64
FLAG = types.boolean
INTS = types.int64[::1]
REALS = types.float64[::1]
FLAGS = types.boolean[::1]
INT_ROWS = types.int64[:, ::1]
REAL_ROWS = types.float64[:, ::1]
BYTES = types.Array(types.uint8, 1, "C", readonly=True)
NOTHING = types.void

# Sums stay in the written order, so that the same input gives the same bits; what is relaxed concerns only
# not-a-number, signed zero and fused multiply-add, none of which a kernel meets.
RELAXED = {"nnan", "nsz", "contract"}


def record(name: type, *fields: Any) -> Any:
    """The compiled type of a named tuple of arrays."""
    if len(set(fields)) == 1:
        return types.NamedUniTuple(fields[0], len(fields), name)  # type: ignore[no-untyped-call]
    return types.NamedTuple(fields, name)  # type: ignore[no-untyped-call]


def inner(function: Function) -> Function:
    """Compile as a part of the kernels of the same file that call it.

    Code on disk is made anew only where its own file changed, so a kernel calls nothing of another file.
    """
    return njit(function)  # type: ignore[no-any-return]


def kernel(signature: Any) -> Callable[[Function], Function]:
    """Compile for this signature; callable from several threads at once."""

    def compile_(function: Function) -> Function:
        try:
            compiled = njit(signature, cache=True, nogil=True, fastmath=RELAXED)(function)
        except RuntimeError:  # no folder for the cache can be written
            compiled = njit(signature, nogil=True, fastmath=RELAXED)(function)
        return compiled  # type: ignore[no-any-return]

    return compile_
