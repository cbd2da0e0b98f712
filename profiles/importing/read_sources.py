"""The content of files: each is recognised, read, cleaned of names and secrets, and judged; nothing is stored.

Every file gets an answer: an import or one clear error, so that a user sees all findings at once.  Whatever an
importer raises, no user sees a traceback: an exception that it did not foresee means a damaged or unknown file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from profiles.device_names import catalogue_device
from profiles.errors import DocumentInvalid, MeshwrightError, NotFound
from profiles.importing.cleaning import clean_imported
from profiles.importing.detect import detect, matching_formats
from profiles.importing.format import Format, ReadOptions
from profiles.importing.formats import load_format
from profiles.importing.given_facts import GivenFacts
from profiles.importing.imported import Imported
from profiles.importing.source_file import SourceFile
from profiles.observations.source import Source

MOST_FILES = 10_000
BAD_ROWS_SHOWN = 20

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class ReadResult:
    """What came of one file, or of several that belong together.

    ``imported`` is there even with an ``error`` when only some rows are bad.  ``passed_over``: a file inside a folder
    that no importer recognises; that is no failure.
    """

    files: tuple[SourceFile, ...]
    format: Format | None = None
    also_looks_like: tuple[str, ...] = ()
    imported: Imported | None = None
    source: Source | None = None
    given: dict[str, str] = field(default_factory=dict)
    error: MeshwrightError | None = None
    passed_over: bool = False

    @property
    def where(self) -> str:
        """How a person calls the source."""
        first = self.files[0].where
        return first if len(self.files) == 1 else f"{first} and {len(self.files) - 1} more"


@dataclass(frozen=True, slots=True)
class _Recognised:
    file: SourceFile
    format: Format | None = None
    also: tuple[str, ...] = ()
    error: MeshwrightError | None = None
    passed_over: bool = False


def read_sources(
    files: Sequence[Path | SourceFile],
    *,
    format_name: str | None = None,
    options: ReadOptions | None = None,
    keep_going: bool = False,
    redact: bool = True,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[ReadResult]:
    """Read files and folders; one result for each source, in the order given.

    Files of a format that takes several (ranks of one run) are read together.  A folder that no folder format
    recognises stands for the files in it.  ``on_progress`` hears how many sources are done, of how many.
    Raises NotFound for an unknown ``format_name``; errors of files are results.
    """
    wanted = load_format(format_name) if format_name is not None else None
    given = dict(options.given) if options is not None else {}
    results: list[ReadResult] = []
    groups = _grouped(_recognise(files, wanted))
    for number, group in enumerate(groups):
        if on_progress is not None:
            on_progress(number, len(groups))
        first = group[0]
        sources = tuple(each.file for each in group)
        if first.format is None:
            results.append(ReadResult(sources, error=first.error, passed_over=first.passed_over))
            continue
        also = tuple(dict.fromkeys(name for each in group for name in each.also))
        results.append(_read(first.format, sources, also, given, keep_going=keep_going, redact=redact))
    return results


def guarded(files: Sequence[SourceFile], action: Callable[[], Answer]) -> Answer:
    """``action()``, with every exception (but ImportError) turned into a MeshwrightError that names the file."""
    try:
        return action()
    except MeshwrightError as error:
        raise _located(error, files) from None
    except ImportError:
        # A package that is not installed is no fault of the file.
        raise
    except Exception as error:
        said = str(error).splitlines()[0][:200] if str(error).strip() else "no message"
        raise DocumentInvalid(
            f"the file is damaged or of an unknown variant ({type(error).__name__}: {said})",
            where=files[0].where,
            hint="choose its --format if it was mistaken for another, or report it with the file",
        ) from None


def _recognise(files: Sequence[Path | SourceFile], wanted: Format | None) -> Iterator[_Recognised]:
    for each in files:
        file = each if isinstance(each, SourceFile) else SourceFile(each)
        try:
            if not file.path.exists():
                raise NotFound("there is no such file or folder", where=file.where, hint="check the path")
            if not file.is_folder:
                yield _recognise_file(file, wanted)
            else:
                yield from _recognise_folder(file, wanted)
        except MeshwrightError as error:
            yield _Recognised(file, error=error)
        except OSError as error:
            what = f"it cannot be read: {error.strerror or error}"
            yield _Recognised(file, error=DocumentInvalid(what, where=file.where, hint="check its permissions"))


def _recognise_file(file: SourceFile, wanted: Format | None) -> _Recognised:
    if wanted is None:
        found, also = guarded([file], lambda: detect(file))
        return _Recognised(file, found, tuple(also))
    if wanted.takes == "folder":
        hint = "give the folder that the tool wrote"
        raise DocumentInvalid(f"{wanted.title} is read from a folder, not from a file", where=file.where, hint=hint)
    # Opened here so that a pickle or an unreadable file is refused whatever the format.
    guarded([file], file.head)
    return _Recognised(file, wanted)


def _recognise_folder(folder: SourceFile, wanted: Format | None) -> Iterator[_Recognised]:
    """The folder itself where a format reads folders, else what is in it."""
    if wanted is not None and wanted.takes == "folder":
        yield _Recognised(folder, wanted)
        return
    if wanted is None:
        found = [each for each in guarded([folder], lambda: matching_formats(folder.head())) if each.takes == "folder"]
        if found:
            yield _Recognised(folder, found[0], tuple(each.name for each in found[1:]))
            return
    inside = list(_recognise_inside(folder, wanted))
    if not any(each.format is not None for each in inside):
        hint = "`meshwright profile formats` lists what can be read; name a format with --format"
        raise DocumentInvalid("no importer recognises anything in this folder", where=folder.where, hint=hint)
    yield from inside


def _recognise_inside(folder: SourceFile, wanted: Format | None) -> Iterator[_Recognised]:
    entries = [path for path in sorted(folder.path.iterdir()) if not path.name.startswith(".")]
    entries = [path for path in entries if not path.is_symlink() and (path.is_dir() or path.is_file())]
    if len(entries) > MOST_FILES:
        what = f"the folder holds {len(entries):,} files; at most {MOST_FILES:,} are read at once"
        raise DocumentInvalid(what, where=folder.where, hint="import its parts one by one")
    for path in entries:
        child = SourceFile(path)
        try:
            if path.is_dir():
                yield from _recognise_folder(child, wanted)
            else:
                yield _recognise_file(child, wanted)
        except MeshwrightError as error:
            yield _Recognised(child, error=error, passed_over=True)


def _grouped(recognised: Iterator[_Recognised]) -> list[list[_Recognised]]:
    """Files of a format that takes several together, the others alone; order of first appearance."""
    groups: dict[object, list[_Recognised]] = {}
    for number, each in enumerate(recognised):
        together = each.format is not None and each.format.takes == "files"
        key = each.format.name if together and each.format is not None else number
        groups.setdefault(key, []).append(each)
    return list(groups.values())


def _read(
    chosen: Format,
    files: tuple[SourceFile, ...],
    also: tuple[str, ...],
    given: dict[str, str],
    *,
    keep_going: bool,
    redact: bool,
) -> ReadResult:
    imported: Imported | None = None
    source: Source | None = None
    error: MeshwrightError | None = None
    try:
        facts = GivenFacts(given)
        imported = guarded(files, lambda: chosen.read(files, ReadOptions(facts)))
        found = imported
        source = guarded(files, lambda: _finish(found, chosen, files, facts, redact=redact))
        _judge(imported, files, keep_going=keep_going)
    except MeshwrightError as caught:
        error = caught
        if source is None:
            imported = None
    return ReadResult(files, chosen, also, imported, source, given, error)


def _finish(
    imported: Imported, chosen: Format, files: Sequence[SourceFile], facts: GivenFacts, *, redact: bool
) -> Source:
    """Fill in what the user says, clean the texts, write down where it comes from."""
    device = facts.get("device")
    if device:
        known = catalogue_device(device) or device
        for batch in imported.batches:
            batch.environment = batch.environment.model_copy(update={"device": known})
    for name in facts.never_asked_for:
        imported.flag("option-not-used", f"'{name}' was given, but this format takes no such fact")
    redactions = dict(clean_imported(imported)) if redact else {}
    return Source(
        kind="imported",
        format=chosen.name,
        tool=imported.tool,
        tool_version=imported.tool_version,
        parser_version=chosen.parser_version,
        file_name=files[0].name,
        file_sha256=_hash(files),
        file_bytes=sum(file.size_bytes for file in files),
        redactions=redactions,
        flags=tuple(imported.flags),
    )


def _judge(imported: Imported, files: Sequence[SourceFile], *, keep_going: bool) -> None:
    """Raises DocumentInvalid for bad rows (unless told to keep going) and for a source without anything usable."""
    bad = imported.bad_rows
    usable = imported.num_observations
    if bad and not (keep_going and (usable or imported.topology is not None)):
        shown = [f"  {row.where}: {row.what}" + (f" ({row.hint})" if row.hint else "") for row in bad[:BAD_ROWS_SHOWN]]
        more = [f"  ... and {len(bad) - BAD_ROWS_SHOWN:,} more"] if len(bad) > BAD_ROWS_SHOWN else []
        rows = "1 row" if len(bad) == 1 else f"{len(bad):,} rows"
        what = "\n".join([f"{rows} cannot be used", *shown, *more])
        hint = (
            f"repair the file, or import the {usable:,} good rows with --keep-going" if usable else "no row is usable"
        )
        raise DocumentInvalid(what, where=files[0].where, hint=hint)
    if not usable and imported.topology is None:
        skipped = "; ".join(f"{count:,} left out: {reason}" for reason, count in imported.skipped.items())
        facts = ", ".join(f"{name} = {value}" for name, value in list(imported.facts.items())[:5])
        raise DocumentInvalid(
            "the file holds no time, no bandwidth and no wiring"
            + (f"; it only says {facts}" if facts else "")
            + (f" ({skipped})" if skipped else ""),
            where=files[0].where,
            hint="check that the benchmark ran to its end",
        )


def _hash(files: Sequence[SourceFile]) -> str:
    """SHA-256 of one file, or of the hashes of several whatever their order."""
    if len(files) == 1:
        return files[0].sha256
    return hashlib.sha256("\n".join(sorted(file.sha256 for file in files)).encode()).hexdigest()


def _located(error: MeshwrightError, files: Sequence[SourceFile]) -> MeshwrightError:
    """The error with a file in ``where``."""
    if not error.where:
        error.where = files[0].where
    elif not any(file.where in error.where or file.name in error.where for file in files):
        error.where = f"{files[0].where}: {error.where}"
    return error
