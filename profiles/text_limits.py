"""Limits on size and depth of documents from outside, shared by the YAML and the JSON reader."""

from __future__ import annotations

from typing import NoReturn

from profiles.errors import DocumentInvalid

MAX_DOCUMENT_BYTES = 5_000_000
MAX_NESTING = 50
MAX_NODES = 200_000
MAX_INTEGER_DIGITS = 300
"""Above this an integer no longer fits a float, and Python's own parser becomes quadratic."""


def refuse(what: str, where: str, line: int, column: int, hint: str) -> NoReturn:
    """Raise ``DocumentInvalid`` at a 1-based line and column of ``where``."""
    raise DocumentInvalid(what, where=f"{where}:{line}:{column}", hint=hint)


def check_size(text: str, where: str) -> None:
    """Refuse documents above ``MAX_DOCUMENT_BYTES`` (UTF-8) before any parsing."""
    size_bytes = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if size_bytes > MAX_DOCUMENT_BYTES:
        raise DocumentInvalid(
            f"the document has {size_bytes:,} bytes; at most {MAX_DOCUMENT_BYTES:,} are read",
            where=where,
            hint="split the document, or check that this is the right file",
        )


def check_surrogates(text: str, where: str) -> None:
    """Refuse lone surrogates: they cannot be written back as UTF-8."""
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        line, column = position(text, error.start)
        refuse("the text holds half a surrogate pair", where, line, column, "save the file as UTF-8")


def position(text: str, offset: int) -> tuple[int, int]:
    """Line and column, both from 1, of a character offset."""
    line = text.count("\n", 0, offset) + 1
    return line, offset - text.rfind("\n", 0, offset)
