"""The source of a batch: the file by its hash, the tool, and what the import changed or noticed."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from profiles.document import Document


class Flag(Document):
    """Something a reader of the numbers should know: the declared rank count contradicts the bandwidths, say."""

    code: str = Field(min_length=1, description="stable short name: rank-mismatch, waiting-included")
    what: str = Field(min_length=1)
    line: int | None = Field(default=None, ge=0)


class Source(Document):
    """Provenance of one batch of observations."""

    schema_version: Literal[1] = 1
    kind: Literal["imported", "measured", "derived"]
    format: str = Field(min_length=1, description="importer or measuring tool: nccl-tests, kineto, meshwright-measure")
    tool: str = ""
    tool_version: str = ""
    parser_version: int = Field(default=1, ge=1)
    file_name: str = Field(default="", description="base name only: folders may hold user names")
    file_sha256: str = ""
    file_bytes: int = Field(default=0, ge=0)
    origin: str = Field(default="", description="where the file was published, if known")
    licence: str = ""
    redactions: dict[str, int] = Field(default_factory=dict, description="how many of each kind were removed")
    flags: tuple[Flag, ...] = ()
