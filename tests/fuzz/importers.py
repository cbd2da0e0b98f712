"""Coverage-guided fuzzing of the importers: ``python -m tests.fuzz.importers FORMAT [libFuzzer flags]``.

Needs the extra ``fuzz`` (atheris).  The corpus starts from the samples that the format recognises; anything but a
``MeshwrightError`` that leaves the reader is a finding.  ``read_sources`` would turn it into a clear error for a user:
here the importer itself is asked.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from profiles.errors import MeshwrightError
from profiles.importing.format import ReadOptions
from profiles.importing.formats import load_format
from profiles.importing.source_file import SourceFile
from tests.importing import SHARED_SAMPLES, SMALL_SAMPLES

LARGEST_SEED_BYTES = 64 << 10


def main() -> None:
    """Fuzz one importer until libFuzzer stops."""
    import atheris

    name, *flags = sys.argv[1:]
    with atheris.instrument_imports(include=["profiles"]):
        importer = load_format(name)
    folder = Path(tempfile.mkdtemp(prefix="meshwright-fuzz-"))
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(_seeds(name)):
        (corpus / str(number)).write_bytes(seed)
    path = folder / "input"

    def one(data: bytes) -> None:
        path.write_bytes(data)
        try:
            importer.read([SourceFile(path)], ReadOptions())
        except MeshwrightError:
            return

    atheris.Setup([sys.argv[0], *flags, str(corpus)], one)
    atheris.Fuzz()


def _seeds(name: str) -> list[bytes]:
    """Small samples that the format recognises."""
    importer = load_format(name)
    found: list[bytes] = []
    for root in (SMALL_SAMPLES, SHARED_SAMPLES):
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.stat().st_size <= LARGEST_SEED_BYTES:
                try:
                    if importer.matches(SourceFile(path).head()):
                        found.append(path.read_bytes())
                except MeshwrightError:
                    continue
    return found


if __name__ == "__main__":
    main()
