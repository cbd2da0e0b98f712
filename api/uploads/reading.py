"""The files of a request are read in a solver process; a file that cannot be used becomes findings.

What files unfold to is limited here, the time and the memory by the process that reads (``api.solving``): a hostile
file costs its sender the answer, and others at most the wait that a search may cost them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from profiles.errors import DocumentInvalid, MeshwrightError
from profiles.import_outcomes import Outcome, outcome_of
from profiles.importing.format import ReadOptions
from profiles.importing.read_sources import ReadResult, read_sources
from profiles.importing.source_file import SourceFile
from profiles.validation import Finding

MOST_UNPACKED_BYTES = 256 << 20
"""Of all files of a request together, after decompression."""
MOST_ROWS = 20
"""Bad rows of a file that an answer lists."""
_CHUNK_BYTES = 1 << 20


def read_uploads(payload: Mapping[str, Any], *, keep_going: bool = False) -> list[Outcome]:
    """One outcome a source, in the order given.  ``payload``: ``files`` (name, path), ``format``, ``facts``."""
    files = [SourceFile(Path(each["path"]), each["name"], base_name(each["name"])) for each in payload["files"]]
    refused = dict(_too_large(files))
    try:
        results = read_sources(
            [file for file in files if file.path not in refused],
            format_name=payload["format"],
            options=ReadOptions(dict(payload["facts"])),
            keep_going=keep_going,
        )
    except ImportError as error:
        what, hint = f"this service lacks {error.name}, which the format needs", "import them where it is installed"
        raise DocumentInvalid(what, where="/files", hint=hint) from None
    except MemoryError:
        what, hint = "reading them needs more memory than one request may use", "send fewer or smaller files"
        raise DocumentInvalid(what, where="/files", hint=hint) from None
    outcomes = [outcome_of(result) for result in results]
    for file in files:
        if (too_large := refused.get(file.path)) is not None:
            outcomes.append(Outcome(ReadResult((file,), error=too_large), error=too_large))
    return sorted(outcomes, key=positions)


def positions(outcome: Outcome) -> tuple[int, ...]:
    """Which of the request's files an outcome is about, from 0: that is what they are called on disk."""
    return tuple(int(file.path.name) for file in outcome.result.files)


def base_name(name: str) -> str:
    """What a file is called without its folders, whatever system it comes from."""
    return PurePosixPath(name.replace("\\", "/")).name or "file"


def findings_of_names(payload: Mapping[str, Any]) -> list[Finding]:
    """What is wrong with the names in the question, which the service looked up before."""
    return [Finding(*each) for each in payload["findings"]]


def findings_of(outcomes: Sequence[Outcome]) -> list[Finding]:
    """Why files are refused, each at its own place: ``/files/3``."""
    return [found for outcome in outcomes if outcome.error is not None for found in _findings(outcome, outcome.error)]


def _findings(outcome: Outcome, error: MeshwrightError) -> Iterator[Finding]:
    file = _file_of(outcome, error.where or "")
    pointer = f"/files/{int(file.path.name)}"
    imported = outcome.result.imported
    what = error.what.split("\n")[0]
    place = (error.where or "").removeprefix(file.where).strip(": #")
    place = f"line {place}" if place.isdigit() else place
    yield Finding(pointer, f"{place}: {what}" if place else what, error.hint or "")
    for row in imported.bad_rows[:MOST_ROWS] if imported is not None else ():
        yield Finding(pointer, f"{row.where}: {row.what}", row.hint)


def _file_of(outcome: Outcome, where: str) -> SourceFile:
    """Which of several files that are read together an error is about."""
    files = outcome.result.files
    return next((file for file in files if where.startswith(file.where)), files[0])


def _too_large(files: Sequence[SourceFile]) -> Iterator[tuple[Path, MeshwrightError]]:
    """Files that, with those before them, unfold to more than is read for one request."""
    left = MOST_UNPACKED_BYTES
    for file in files:
        size = _unpacked_bytes(file, left)
        if size > left:
            yield (
                file.path,
                DocumentInvalid(
                    f"the files unfold to more than {MOST_UNPACKED_BYTES:,} bytes",
                    where=file.where,
                    hint="send fewer at once, or use `meshwright profile import` on the server",
                ),
            )
        else:
            left -= size


def _unpacked_bytes(file: SourceFile, most: int) -> int:
    """Bytes after decompression, counted until they are more than ``most``; damage is for the reader to tell."""
    size = 0
    try:
        with file.open() as stream:
            while size <= most and (chunk := stream.read(_CHUNK_BYTES)):
                size += len(chunk)
    except (MeshwrightError, OSError, EOFError, zlib.error):
        return size
    return size
