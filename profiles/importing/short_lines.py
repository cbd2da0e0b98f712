"""Which lines of a log can be lines of a benchmark's output?  Those of a sane length; the others are counted.

A line of a megabyte is a binary dump or an attack on pattern matching, never a row of results.
"""

from __future__ import annotations

from collections.abc import Iterator

from profiles.importing.imported import Imported
from profiles.importing.log_lines import LogLine, clean_line
from profiles.importing.source_file import SourceFile

MAX_CHARACTERS = 8192


def short_lines(file: SourceFile, imported: Imported) -> Iterator[LogLine]:
    """Cleaned lines of at most ``MAX_CHARACTERS``."""
    for number, raw in file.lines():
        if len(raw) > MAX_CHARACTERS:
            imported.skip(f"line of more than {MAX_CHARACTERS} characters")
        else:
            yield clean_line(number, raw)
