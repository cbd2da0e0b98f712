"""The record of one batch of observations: where it was measured, where it comes from, how much it holds.

The identity of a batch is what was read and how, never when or by whom: importing the same file twice gives the same
id.  Notes about the import (flags, skipped rows) are kept but are no part of the identity.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from pydantic import Field

from profiles.document import Document, canonical_json
from profiles.observation_store.schema import Kind
from profiles.observations.environment import Environment
from profiles.observations.source import Source
from profiles.topology import Topology


class StoredBatch(Document):
    """One batch: ``batches/<batch_id>.json``.  Its rows are ``<kind>/<batch_id>.parquet``."""

    schema_version: Literal[1] = 1
    batch_id: str = Field(pattern="^[0-9a-f]{64}$")
    environment: Environment
    source: Source
    given: dict[str, str] = Field(default_factory=dict, description="what the user said with --set and --device")
    counts: dict[Kind, int] = Field(default_factory=dict, description="rows by kind; a kind without rows is absent")
    topology: Topology | None = None
    facts: dict[str, str | int | float | bool] = Field(default_factory=dict)
    skipped: dict[str, int] = Field(default_factory=dict, description="rows left out on purpose, by reason")
    num_bad_rows: int = Field(default=0, ge=0, description="rows that could not be used (--keep-going)")
    stored_at: str = Field(default="", description="ISO 8601, UTC")

    @property
    def num_observations(self) -> int:
        """Rows of all kinds."""
        return sum(self.counts.values())

    @property
    def device(self) -> str:
        """Catalogue name of the device, else the reported one, else empty."""
        return self.environment.device or self.environment.device_reported


def batch_id_of(source: Source, environment: Environment, given: dict[str, str], part: int = 0) -> str:
    """SHA-256 of what was read and how.  ``part`` tells batches of one file with equal environments apart."""
    identity = {
        "source": source.file_sha256,
        "kind": source.kind,
        "format": source.format,
        "parser_version": source.parser_version,
        "environment": environment.model_dump(mode="json"),
        "given": given,
        "part": part,
    }
    return hashlib.sha256(canonical_json(identity).encode()).hexdigest()
