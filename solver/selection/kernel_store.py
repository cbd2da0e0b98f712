"""A kernel's machine code: kept in small files, loaded by LLVM's linker alone.

A file is named after the kernel and what its code depends on besides the source: Python, NumPy, Numba, LLVM and the
processor.  It holds a SHA-256 of the source's digest and the object file, then the object file, so that a file whose
source has changed, that was cut short or damaged reads as absent.  It lies beside the source in ``__pycache__``, or in
the user's cache where that folder cannot be written.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from solver.selection.kernel_types import ENTRY

METH_FASTCALL = 0x80
"""Python's flag of functions that get an array of arguments."""

_NEW_FUNCTION = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)
_KEEP = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", ctypes.pythonapi))
_LIBRARY_NUMBERS = itertools.count()


def read_code(name: str, source: Path, digest: bytes) -> bytes | None:
    """The object file that is kept for this kernel and this digest of its source, if there is one."""
    for folder in _folders(source):
        try:
            kept = (folder / _file_name(name)).read_bytes()
        except OSError:
            continue
        check, code = kept[:32], kept[32:]
        if sha256(digest + code).digest() == check:
            return code
    return None


def write_code(name: str, source: Path, digest: bytes, code: bytes) -> None:
    """Keep an object file in the first folder that can be written; a reader sees all of it or nothing."""
    for folder in _folders(source):
        unfinished = folder / f"{_file_name(name)}.{os.getpid()}.{threading.get_ident()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            try:
                unfinished.write_bytes(sha256(digest + code).digest() + code)
                unfinished.replace(folder / _file_name(name))
            finally:
                unfinished.unlink(missing_ok=True)
        except OSError:
            continue
        return


def link(name: str, code: bytes) -> Callable[..., Any]:
    """The function of an object file."""
    from llvmlite.binding import JITLibraryBuilder

    builder = JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(ENTRY)
    library = builder.link(_linker(), f"{name}.{next(_LIBRARY_NUMBERS)}")
    definition = _MethodDefinition(name.encode(), library[ENTRY], METH_FASTCALL, None)
    # Python keeps only the address of what it calls, also while it ends: neither the code nor the definition is freed.
    _KEEP(definition)
    _KEEP(library)
    function: Callable[..., Any] = _NEW_FUNCTION(ctypes.addressof(definition), np.ndarray, None)
    return function


class _MethodDefinition(ctypes.Structure):
    """Python's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("entry", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def _folders(source: Path) -> Iterator[Path]:
    yield source.parent / "__pycache__"
    cache = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    if cache.is_absolute():
        yield cache / "meshwright" / "kernels"


def _file_name(name: str) -> str:
    return f"{name}-{_surroundings()}.kernel"


@lru_cache(maxsize=1)
def _surroundings() -> str:
    """What machine code depends on besides its source, in 16 letters."""
    import llvmlite
    from llvmlite.binding import get_host_cpu_features, get_host_cpu_name, get_process_triple

    parts = (
        sys.implementation.cache_tag,
        object.__basicsize__,
        np.__version__,
        version("numba"),
        llvmlite.__version__,
        get_process_triple(),
        get_host_cpu_name(),
        get_host_cpu_features().flatten(),
        Path(__file__).with_name("kernel_compiler.py").read_text(encoding="utf-8"),
    )
    return sha256(repr(parts).encode()).hexdigest()[:16]


@lru_cache(maxsize=1)
def _linker() -> Any:
    """LLVM's linker for the machine at hand."""
    from llvmlite.binding import create_lljit_compiler, initialize_native_asmprinter, initialize_native_target

    initialize_native_target()
    initialize_native_asmprinter()
    linker = create_lljit_compiler()
    _KEEP(linker)
    return linker
