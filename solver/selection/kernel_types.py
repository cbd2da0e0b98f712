"""The types of a kernel's arguments and result, written beside each kernel without importing the compiler."""

from __future__ import annotations

from dataclasses import dataclass

ENTRY = "meshwright_kernel"
"""The name of the one function of an object file."""

ELEMENTS = {"boolean": "bool", "uint8": "uint8", "int64": "int64", "float64": "float64"}
"""Numba's names of numbers, and NumPy's."""


@dataclass(frozen=True, slots=True)
class Type:
    """A number, nothing (``void``), or an array of numbers in C order; ``element`` is Numba's name of the number."""

    element: str
    ndim: int = 0
    readonly: bool = False

    def __call__(self, *arguments: Type | Record) -> Signature:
        """The signature of a kernel that gives this."""
        return Signature(self, arguments)


@dataclass(frozen=True, slots=True)
class Record:
    """A named tuple of numbers and arrays."""

    name: type
    fields: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """What a kernel gives and takes."""

    result: Type
    arguments: tuple[Type | Record, ...]
