"""Lines of a log that can be a benchmark's output: those of plausible length; the others are counted.

A line of a megabyte or a word of a kilobyte is a binary dump or an attack on pattern matching (launcher prefixes are
looked for in the first word), never a row of results.
"""

from __future__ import annotations

from collections.abc import Iterator

from profiles.importing.imported import Imported
from profiles.importing.log_lines import LogLine, clean_lines
from profiles.importing.source_file import SourceFile

MAX_CHARACTERS = 8192
MAX_WORD = 512


def short_lines(file: SourceFile, imported: Imported) -> Iterator[LogLine]:
    """Cleaned lines of at most ``MAX_CHARACTERS`` in words of at most ``MAX_WORD``."""
    kept: list[tuple[int, str]] = []
    for number, raw in file.lines():
        if len(raw) > MAX_CHARACTERS:
            imported.skip(f"line of more than {MAX_CHARACTERS} characters")
        elif len(raw) > MAX_WORD and any(len(word) > MAX_WORD for word in raw.split()):
            imported.skip(f"line with a word of more than {MAX_WORD} characters")
        else:
            kept.append((number, raw))
    yield from clean_lines(kept)
