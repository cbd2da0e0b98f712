"""The profile that a problem uses: its identity, by which the content is found in the profile folder."""

from __future__ import annotations

from pydantic import Field

from profiles.document import Document


class ProfileReference(Document):
    """A profile by content: equal ids, equal numbers."""

    schema_version: int = Field(default=1, ge=1, le=1)
    profile_id: str = Field(pattern="^[0-9a-f]{64}$", description="SHA-256 of the profile's content")
    device: str = Field(min_length=1, description="catalogue name of the device that it is for")
    num_points: int = Field(gt=0, description="measured shapes and sizes behind it")
