"""Documents and their identity.

A *document* is anything written to disk, database or wire: frozen, closed (unknown keys are errors), with finite
numbers only, hashed by its canonical JSON.  Working objects are not documents and may change freely.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict


class Document(BaseModel):
    """Base of every persisted type: immutable, no unknown keys, no NaN or infinity."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        ser_json_inf_nan="constants",
        validate_default=True,
        defer_build=True,
    )

    def canonical_json(self) -> str:
        """The one byte sequence that stands for this document: sorted keys, no spaces, defaults written out."""
        return canonical_json(self.model_dump(mode="json"))

    def content_hash(self) -> str:
        """SHA-256 (hex) of the canonical JSON: equal documents, equal ids."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()


def canonical_json(value: Any) -> str:
    """Serialise plain JSON data deterministically (sorted keys, UTF-8, no NaN)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
