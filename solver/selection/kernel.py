"""The inner loops, compiled once by Numba into files that are loaded without it.

Each kernel is compiled for the one signature that is written beside it, when it is first called and no file holds its
machine code (``kernel_store``).  Loading a file takes a millisecond and imports neither Numba nor the compiler of LLVM;
compiling takes seconds.  ``python -m solver.selection.compile_kernels`` fills the files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cached_property, update_wrapper
from hashlib import sha256
from pathlib import Path
from threading import Lock
from types import CodeType
from typing import Any, TypeVar

from solver.selection.kernel_store import link, read_code, write_code
from solver.selection.kernel_types import Record, Signature, Type

Function = TypeVar("Function", bound=Callable[..., Any])

INT = Type("int64")
REAL = Type("float64")
FLAG = Type("boolean")
INTS = Type("int64", 1)
REALS = Type("float64", 1)
FLAGS = Type("boolean", 1)
INT_ROWS = Type("int64", 2)
REAL_ROWS = Type("float64", 2)
BYTES = Type("uint8", 1, readonly=True)
NOTHING = Type("void")

CONSTANTS = (bool, int, float, str, tuple)


def record(name: type, *fields: Type) -> Record:
    """The type of a named tuple of arrays."""
    return Record(name, fields)


def inner(function: Function) -> Function:
    """Compile as a part of the kernels that call it."""
    return Compiled(function, None)  # type: ignore[return-value]


def kernel(signature: Signature) -> Callable[[Function], Function]:
    """Compile for this signature; callable from several threads at once, without Python's lock.

    A call raises ``TypeError`` where an argument is not what the signature says, and ``ArithmeticError`` where the
    kernel divides by zero or has no room for its scratch arrays.
    """
    return lambda function: Kernel(function, signature)  # type: ignore[return-value]


def load_kernels(package: str) -> None:
    """Load, and where necessary compile, every kernel of the modules of a package that are imported."""
    for name in sorted(sys.modules):
        if name.startswith(f"{package}."):
            for value in vars(sys.modules[name]).values():
                if isinstance(value, Kernel):
                    value.load()


class Compiled:
    """A function that Numba compiles."""

    def __init__(self, function: Callable[..., Any], signature: Signature | None) -> None:
        update_wrapper(self, function)
        self.function: Any = function
        self.signature = signature

    def __call__(self, *arguments: Any) -> Any:
        """Run as Python."""
        return self.function(*arguments)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of what the machine code depends on: signatures, byte code, constants, functions that are called."""
        parts = [repr(self.signature)]
        codes, namespace = [self.function.__code__], self.function.__globals__
        for code in codes:
            codes.extend(each for each in code.co_consts if isinstance(each, CodeType))
            constants = [each for each in code.co_consts if not isinstance(each, CodeType)]
            parts.append(repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants)))
            for name in code.co_names:
                value = namespace.get(name)
                if isinstance(value, Compiled):
                    parts.append(value.digest.hex())
                elif isinstance(value, CONSTANTS):
                    parts.append(repr(value))
        return sha256("\n".join(parts).encode()).digest()

    @cached_property
    def compiled(self) -> Any:
        """Numba's function."""
        from solver.selection.kernel_compiler import compile_

        return compile_(self.function, self.signature)

    @property
    def _numba_type_(self) -> Any:
        """What Numba sees where another kernel calls this."""
        return self.compiled._numba_type_


class Kernel(Compiled):
    """A compiled function that Python calls."""

    signature: Signature

    def __init__(self, function: Callable[..., Any], signature: Signature) -> None:
        super().__init__(function, signature)
        self._lock = Lock()
        self._entry: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Run the machine code."""
        return (self._entry or self.load())(*arguments)

    def load(self) -> Callable[..., Any]:
        """The machine code as a function: from a file, or compiled and then kept in one."""
        with self._lock:
            if self._entry is None:
                name = f"{self.__module__}.{self.function.__qualname__}"
                source = Path(self.function.__code__.co_filename)
                code = read_code(name, source, self.digest)
                if code is None:
                    from solver.selection.kernel_compiler import object_code

                    code = object_code(self.compiled, self.signature)
                    write_code(name, source, self.digest, code)
                self._entry = link(name, code)
            return self._entry
