"""Real files for importer tests: small copies in ``tests/samples``, the rest from ``../shared/samples``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from profiles.importing.format import Format, ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.source_file import SourceFile

SMALL_SAMPLES = Path(__file__).parent / "samples"
SHARED_SAMPLES = Path(__file__).parents[2] / "shared" / "samples"


def sample(name: str) -> SourceFile:
    """The sample called ``folder/file``; the test is skipped with a message where only ../shared has it."""
    for folder in (SMALL_SAMPLES, SHARED_SAMPLES):
        if (folder / name).exists():
            return SourceFile(folder / name)
    pytest.skip(f"../shared/samples/{name} is not here")


def written(folder: Path, name: str, content: str | bytes) -> SourceFile:
    """A file with this content."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return SourceFile(path)


def read(importer: Format, *files: SourceFile, given: dict[str, str] | None = None) -> Imported:
    """What the importer finds, after checking that it recognises each file."""
    for file in files:
        assert importer.matches(file.head()), f"{importer.name} does not recognise {file.name}"
    return importer.read(files, ReadOptions(given or {}))


def read_anyway(importer: Format, files: Sequence[SourceFile], given: dict[str, str] | None = None) -> Imported:
    """What the importer finds in files that it need not recognise (hostile ones)."""
    return importer.read(files, ReadOptions(given or {}))
