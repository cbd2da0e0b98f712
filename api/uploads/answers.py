"""The answers about uploaded files: plain facts of each, as ``api.wire.uploads`` describes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from api.uploads.reading import MOST_ROWS, findings_of, positions
from api.wire.problem_details import finding_in_fields, in_fields
from api.wire.uploads import BadRow, FileOutcome
from profiles.import_outcomes import Outcome
from profiles.importing.imported import Imported
from profiles.topology import Topology


def file_outcomes(outcomes: Sequence[Outcome]) -> tuple[FileOutcome, ...]:
    """One entry a source."""
    return tuple(_file_outcome(outcome) for outcome in outcomes)


def files_read(outcomes: Sequence[Outcome]) -> tuple[FileOutcome, ...]:
    """The same where nothing is to be stored and nothing is refused."""
    return tuple(each.model_copy(update={"status": "read"}) for each in file_outcomes(outcomes))


def measured_devices(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Devices of which rows can be stored; empty text where a file does not say."""
    usable = (batch.record for outcome in outcomes if outcome.usable for batch in outcome.prepared)
    return tuple(sorted({record.device for record in usable if record.num_observations}))


def topology_words(topology: Topology) -> str:
    """What a wiring shows: ``96 nodes, 3 network levels``."""
    said = []
    if topology.node is not None:
        said.append(f"a node of {_counted(topology.node.num_devices, 'device')}")
    if topology.num_nodes is not None:
        said.append(_counted(topology.num_nodes, "node"))
    if nics := len(topology.node.nics if topology.node is not None and topology.node.nics else topology.nics):
        said.append(_counted(nics, "NIC") + " a node")
    if topology.tiers:
        said.append(_counted(len(topology.tiers), "network level"))
    return ", ".join(said) or "wiring"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _file_outcome(outcome: Outcome) -> FileOutcome:
    result, source = outcome.result, outcome.result.source
    counts: Counter[str] = Counter()
    for batch in outcome.prepared if outcome.usable else ():
        counts.update(batch.record.counts)
    return FileOutcome(
        name=result.files[0].where,
        positions=positions(outcome),
        format=result.format.name if result.format is not None else None,
        title=result.format.title if result.format is not None else None,
        tool=source.tool if source is not None else None,
        tool_version=source.tool_version if source is not None else None,
        also_looks_like=result.also_looks_like,
        status=outcome.status if result.format is not None else "not recognised",
        counts=dict(counts),
        devices=measured_devices([outcome]),
        topology=topology_words(outcome.topology) if outcome.topology is not None else None,
        redactions=dict(source.redactions) if source is not None else {},
        findings=tuple(finding_in_fields(each) for each in findings_of([outcome])),
        **_content(result.imported),
    )


def _content(imported: Imported | None) -> dict[str, Any]:
    """What a reader of the numbers should know; nothing of a file that could not be read."""
    if imported is None:
        return {"flags": (), "bad_rows": (), "num_bad_rows": 0, "skipped": {}}
    rows = imported.bad_rows
    return {
        "flags": tuple(flag.model_copy(update={"what": in_fields(flag.what)}) for flag in imported.flags),
        "bad_rows": tuple(BadRow(where=row.where, what=row.what, hint=in_fields(row.hint)) for row in rows[:MOST_ROWS]),
        "num_bad_rows": len(rows),
        "skipped": dict(imported.skipped),
    }
