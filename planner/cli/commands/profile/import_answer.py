"""The answer of an import: the same facts for programs (JSON, YAML) and for people (tables)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from planner.cli.commands.profile.row_data import row_data
from planner.cli.commands.profile.rows_summary import COLUMNS, batch_lines
from planner.errors import MeshwrightError
from profiles.import_outcomes import Outcome
from profiles.observation_store.preparing import PreparedBatch
from profiles.observation_store.schema import KINDS, Kind, from_table
from profiles.observations.records import Observation

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.cli.commands.profile.cluster_out import ClusterFile
    from profiles.observation_store.store import ObservationStore

NOTES_SHOWN = 8
NOTES_IN_ALL = 40
FILES_SHOWN = 30


def answer_data(outcomes: Sequence[Outcome], rows: int, *, cluster: ClusterFile | None) -> dict[str, Any]:
    """The answer as plain data; ``rows`` of each kind and batch (0 = counts only)."""
    data: dict[str, Any] = {
        "files": [_file_data(outcome, rows) for outcome in outcomes],
        "num_observations": sum(outcome.num_observations for outcome in outcomes),
    }
    if cluster is not None:
        data["cluster"] = {"file": str(cluster.path), "notes": list(cluster.notes)}
    return data


def error_data(error: MeshwrightError | None) -> dict[str, Any] | None:
    """What a door says about an error."""
    if error is None:
        return None
    return {"slug": error.slug, "what": error.what, "where": error.where, "hint": error.hint}


def answer_tables(
    outcomes: Sequence[Outcome], store: ObservationStore, *, dry_run: bool, cluster: ClusterFile | None
) -> Iterator[RenderableType]:
    """What a person wants to know: what is in each file, what to mind, and what to do next."""
    from planner.cli.render.tables import bullets, heading, table

    shown = [outcome for outcome in outcomes if outcome.result.format is not None]
    if shown:
        yield table("", ("file", "format", ">observations", "status"), list(_file_lines(shown)))
    lines = batch_lines([batch for outcome in outcomes if outcome.usable for batch in outcome.prepared])
    if lines:
        yield heading("What is in them")
        yield table("", ("device", *COLUMNS), lines)
    notes = list(_short_notes(outcomes))
    if notes:
        yield heading("Mind")
        yield bullets(notes)
    if cluster is not None:
        yield heading(f"Cluster {cluster.path}")
        yield bullets(cluster.notes)
    yield heading("Next")
    yield bullets(list(_next_steps(outcomes, store, dry_run=dry_run, cluster=cluster)))


def _file_data(outcome: Outcome, rows: int) -> dict[str, Any]:
    result, imported, source = outcome.result, outcome.result.imported, outcome.result.source
    return {
        "file": result.files[0].where,
        "files": [file.where for file in result.files],
        "sha256": source.file_sha256 if source else None,
        "bytes": source.file_bytes if source else None,
        "format": result.format.name if result.format else None,
        "title": result.format.title if result.format else None,
        "tool": source.tool if source else None,
        "tool_version": source.tool_version if source else None,
        "also_looks_like": list(result.also_looks_like),
        "status": outcome.status,
        "error": error_data(outcome.error),
        "batches": [_batch_data(batch, rows, outcome.stored_ids) for batch in outcome.prepared],
        "topology": imported.topology.model_dump(mode="json") if imported and imported.topology else None,
        "facts": imported.facts if imported else {},
        "flags": [flag.model_dump(mode="json") for flag in imported.flags] if imported else [],
        "bad_rows": [asdict(row) for row in imported.bad_rows] if imported else [],
        "skipped": imported.skipped if imported else {},
        "redactions": dict(source.redactions) if source else {},
    }


def _batch_data(batch: PreparedBatch, rows: int, stored_ids: frozenset[str]) -> dict[str, Any]:
    data: dict[str, Any] = {
        "batch_id": batch.record.batch_id,
        "environment": batch.record.environment.model_dump(mode="json"),
        "num_observations": batch.record.num_observations,
        "counts": {kind: batch.record.counts.get(kind, 0) for kind in KINDS},
        "already_stored": batch.record.batch_id in stored_ids,
    }
    if rows > 0:
        for kind in KINDS:
            data[kind] = [row_data(row) for row in _first_rows(batch, kind, rows)]
        data["truncated"] = any(count > rows for count in batch.record.counts.values())
    return data


def _first_rows(batch: PreparedBatch, kind: Kind, limit: int) -> list[Observation]:
    return from_table(kind, batch.rows(kind, limit)) if kind in batch.tables else []


def _file_lines(outcomes: Sequence[Outcome]) -> Iterator[tuple[str, ...]]:
    """A line a file; of hundreds the first ones, and how many there are of each status."""
    yield from (_line(outcome) for outcome in outcomes[:FILES_SHOWN])
    if len(outcomes) > FILES_SHOWN:
        rest = outcomes[FILES_SHOWN:]
        for status, count in Counter(outcome.status for outcome in rest).items():
            rows = sum(outcome.num_observations for outcome in rest if outcome.status == status)
            yield (f"... and {count} more", "", f"{rows:,}", status)


def _line(outcome: Outcome) -> tuple[str, ...]:
    result = outcome.result
    kinds = {kind: sum(batch.record.counts.get(kind, 0) for batch in outcome.prepared) for kind in KINDS}
    said = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items() if count)
    if result.imported is not None and result.imported.topology is not None:
        said = f"{said}, topology" if said else "topology"
    return (result.where, result.format.name if result.format else "", said if outcome.usable else "", outcome.status)


def _short_notes(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Notes of all files; one that several files share is said once."""
    files: dict[str, list[str]] = {}
    for outcome in outcomes:
        for note in _notes(outcome):
            files.setdefault(note, []).append(outcome.result.files[0].name)
    for note, names in list(files.items())[:NOTES_IN_ALL]:
        yield f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {note}"
    if len(files) > NOTES_IN_ALL:
        yield f"{len(files) - NOTES_IN_ALL} more notes (-o json shows them)"


def _notes(outcome: Outcome) -> Iterator[str]:
    """Flags, rows left out, bad rows and redactions of one source."""
    result = outcome.result
    if result.passed_over and outcome.error is not None:
        yield f"left out: {outcome.error.what}".split("\n")[0]
        return
    imported, source = result.imported, result.source
    if imported is None or outcome.error is not None:
        return
    if result.also_looks_like:
        yield f"also looks like {', '.join(result.also_looks_like)}"
    for flag in imported.flags[:NOTES_SHOWN]:
        yield f"{f'line {flag.line}: ' if flag.line else ''}{flag.what} [{flag.code}]"
    if len(imported.flags) > NOTES_SHOWN:
        yield f"{len(imported.flags) - NOTES_SHOWN} more notes (-o json shows them)"
    for reason, count in imported.skipped.items():
        yield f"{count:,} left out: {reason}"
    for row in imported.bad_rows[:NOTES_SHOWN]:
        yield f"bad: {row.where}: {row.what}"
    if len(imported.bad_rows) > NOTES_SHOWN:
        yield f"{len(imported.bad_rows) - NOTES_SHOWN:,} more bad rows (-o json shows them)"
    removed = ", ".join(f"{count:,} {kind}" for kind, count in (source.redactions if source else {}).items())
    if removed:
        yield f"removed from texts: {removed}"
    unknown = any(not batch.record.environment.device for batch in outcome.prepared if batch.record.num_observations)
    if unknown:
        yield "the device is not known; --device NAME says it (`meshwright devices list`)"


def _next_steps(
    outcomes: Sequence[Outcome], store: ObservationStore, *, dry_run: bool, cluster: ClusterFile | None
) -> Iterator[str]:
    if dry_run:
        yield "Nothing was stored (--dry-run)."
    elif any(outcome.status == "stored" for outcome in outcomes):
        yield f"Stored in {store.folder}. `meshwright profile list` shows everything there."
    elif any(outcome.usable for outcome in outcomes):
        yield "Everything was stored already; nothing changed. `meshwright profile list` shows it."
    if cluster is not None:
        yield f"{cluster.path} {'could' if dry_run else 'can'} be given to --cluster."
    elif any(outcome.result.imported and outcome.result.imported.topology for outcome in outcomes if outcome.usable):
        yield "--cluster-out FILE --base NAME turns the topology into a cluster for `meshwright plan`."
