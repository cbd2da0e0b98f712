"""Reading the files of an import on the command line, and the message when some are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from planner.cli.commands.profile.flags import INSTALLED
from planner.cli.progress import counted_progress
from planner.errors import DocumentInvalid, MeshwrightError
from profiles.import_outcomes import Outcome, outcome_of
from profiles.importing.format import ReadOptions
from profiles.importing.read_sources import ReadResult, read_sources
from profiles.importing.source_file import SourceFile

REFUSED_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """How files are to be read."""

    format_name: str | None
    given: Mapping[str, str]
    keep_going: bool = False
    redact: bool = True
    quiet: bool = False


def read_all(files: Sequence[str], system: str | None, wanted: Wanted) -> list[Outcome]:
    """Read every file, or the installed tables of a system.  Errors of files become outcomes."""
    if system is not None:
        return _read_installed(system, wanted)
    with counted_progress("reading", quiet=wanted.quiet) as progress:
        return [outcome_of(result) for result in _results([Path(file) for file in files], wanted, progress)]


def refusal(outcomes: Sequence[Outcome], *, keep_going: bool) -> MeshwrightError | None:
    """The error of an import in which files were refused, or rows left out; None when all is well."""
    refused = [outcome for outcome in outcomes if outcome.error is not None and not outcome.result.passed_over]
    considered = [outcome for outcome in outcomes if not outcome.result.passed_over]
    if len(refused) == 1 and len(considered) == 1:
        return refused[0].error
    if refused:
        lines = [_one_line(outcome) for outcome in refused[:REFUSED_SHOWN]]
        more = [f"  ... and {len(refused) - REFUSED_SHOWN} more"] if len(refused) > REFUSED_SHOWN else []
        rest = "the others are imported" if keep_going else "nothing is stored"
        return DocumentInvalid(
            "\n".join([f"{len(refused)} of {len(considered)} files cannot be imported; {rest}", *lines, *more]),
            where="profile import",
            hint="repair them or leave them out" + ("" if keep_going else ", or import the others with --keep-going"),
        )
    bad = [outcome for outcome in considered if outcome.result.imported and outcome.result.imported.bad_rows]
    if bad:
        total = sum(len(outcome.result.imported.bad_rows) for outcome in bad if outcome.result.imported)
        rows = "1 row was" if total == 1 else f"{total:,} rows were"
        return DocumentInvalid(
            f"{rows} left out as unusable; the good ones are imported",
            where=bad[0].result.where,
            hint="they are listed under bad_rows in the answer",
        )
    return None


def _read_installed(system: str, wanted: Wanted) -> list[Outcome]:
    """The tables of the installed aiconfigurator package; a table that is not understood is passed over."""
    from profiles.importers.aiconfigurator.installed import package_version, table_files

    release = package_version()
    paths = table_files(system)
    outcomes: list[Outcome] = []
    with counted_progress(f"reading {system}", quiet=wanted.quiet) as progress:
        for number, path in enumerate(paths, start=1):
            # Where pip put the package is nobody's business; the place inside it is what tells tables apart.
            file = SourceFile(path, label=str(Path(*path.parts[path.parts.index(system) :])))
            for result in _results([file], replace(wanted, format_name=INSTALLED)):
                outcomes.append(outcome_of(_from_package(result, release)))
            if progress is not None:
                progress(number, len(paths))
    if not any(outcome.usable for outcome in outcomes):
        return outcomes
    for outcome in outcomes:
        if outcome.error is not None:
            outcome.result = _passed_over(outcome.result)
    return outcomes


def _from_package(result: ReadResult, release: str) -> ReadResult:
    if result.source is None:
        return result
    return replace(result, source=result.source.model_copy(update={"tool_version": release}))


def _passed_over(result: ReadResult) -> ReadResult:
    return replace(result, passed_over=True)


def _results(
    paths: Sequence[Path | SourceFile], wanted: Wanted, progress: Callable[[int, int], None] | None = None
) -> list[ReadResult]:
    return read_sources(
        paths,
        format_name=wanted.format_name,
        options=ReadOptions(dict(wanted.given)),
        keep_going=wanted.keep_going,
        redact=wanted.redact,
        on_progress=progress,
    )


def _one_line(outcome: Outcome) -> str:
    error = outcome.error
    said = error.what.split("\n")[0] if error is not None else ""
    return f"  {outcome.result.where}: {said}"
