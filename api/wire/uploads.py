"""Wire documents of uploads: the files that a client may send to be read, and what is said about each."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from api.wire.problem_details import Finding
from api.wire.questions import Name
from profiles.cluster import Cluster
from profiles.document import Document
from profiles.import_outcomes import Status
from profiles.observations.source import Flag

MOST_FILES = 64
MOST_FACTS = 32
NAMED = "imported"
"""What a completed cluster is called when nobody names it."""

FileName = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]{1,255}$")]
"""A name is data: formats are recognised by it, nothing is ever opened under it."""
FactName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
Fact = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class UploadedFile(Document):
    """One file, as a tool wrote it."""

    name: FileName
    content_base64: str = Field(description="its bytes in base64 (RFC 4648); gzip is unpacked")


class UploadQuestion(Document):
    """Files to be read, and what the client knows about them."""

    files: tuple[UploadedFile, ...] = Field(min_length=1, max_length=MOST_FILES)
    format: Name | None = Field(default=None, description="of all files; None = each is recognised by its content")
    facts: dict[FactName, Fact] = Field(
        default_factory=dict,
        max_length=MOST_FACTS,
        description="what the files do not say: device, operation, group_size, num_nodes, ...",
    )


class CompletionQuestion(UploadQuestion):
    """``POST /v1/clusters:complete``: which cluster do these files describe?"""

    base: Name | None = Field(default=None, description="cluster that gives the numbers which no file gives")
    device: Name | None = Field(default=None, description="catalogue device; overrules the files and the base")
    name: Name = Field(default=NAMED, description="how the cluster is called")


class ImportQuestion(UploadQuestion):
    """``POST /v1/profiles:import``: measurements to keep."""

    keep_going: bool = Field(default=False, description="store good files and good rows although others are refused")
    dry_run: bool = Field(default=False, description="store nothing; say what would be stored")


class BadRow(Document):
    """A row that cannot be used."""

    where: str = Field(description="line from 1, or a JSON pointer")
    what: str
    hint: str


class FileOutcome(Document):
    """What became of one file, or of several that belong together (ranks of one run)."""

    name: str
    positions: tuple[int, ...] = Field(description="which of the request's files, from 0")
    format: str | None = Field(description="None = no importer takes it")
    title: str | None = Field(description="the format in words")
    tool: str | None
    tool_version: str | None
    also_looks_like: tuple[str, ...] = Field(description="other formats that would take it")
    status: Literal["read"] | Status = Field(description="read: of a topology, of which nothing is stored")
    counts: dict[str, int] = Field(description="rows by kind: operators, collectives, links, iterations")
    devices: tuple[str, ...] = Field(description="devices that were measured; empty text = the file does not say")
    topology: str | None = Field(description="the wiring that it shows, in words")
    flags: tuple[Flag, ...] = Field(description="what a reader of the numbers should know")
    bad_rows: tuple[BadRow, ...] = Field(description="rows that cannot be used; the first ones")
    num_bad_rows: int
    skipped: dict[str, int] = Field(description="rows left out on purpose, by reason")
    redactions: dict[str, int] = Field(description="names and secrets removed from texts, by kind")
    findings: tuple[Finding, ...] = Field(description="why it is refused")


class ClusterCompletion(Document):
    """``POST /v1/clusters:complete``: a cluster that a question takes, and where each of its values comes from."""

    cluster: Cluster
    notes: tuple[str, ...] = Field(description="one sentence a value")
    files: tuple[FileOutcome, ...]


class MeasuredDevice(Document):
    """A device that the files measured, and what a question with ``profile: auto`` leans on now."""

    device: str
    in_catalogue: bool = Field(description="false = kept, but no plan can use it")
    profile_id: str | None = Field(description="None = nothing stored predicts anything")
    num_points: int


class ImportAnswer(Document):
    """``POST /v1/profiles:import``: what was read, and what was kept of it."""

    dry_run: bool
    num_observations: int = Field(description="rows that can be stored, stored already or not")
    files: tuple[FileOutcome, ...]
    devices: tuple[MeasuredDevice, ...]
