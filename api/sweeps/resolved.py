"""What a sweep's names meant when it was asked: a document that makes its cells again, on every service.

Stored names may come to mean something else, so what they meant is kept.  The sweep's id is made of this document and
of the software: the same content is the same sweep.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from planner.answers.sweep.grid import Cell, Sources, grid
from planner.answers.sweep.question import SweepQuestion
from planner.model.spec import ModelSpec
from planner.search.options import SearchOptions
from planner.store import software_signature
from profiles.cluster import Cluster
from profiles.device import Device
from profiles.document import Document
from profiles.prediction.reference import ProfileReference
from profiles.scaling import scale_cluster


class ResolvedSweep(Document):
    """A sweep without names to look up.

    ``models`` and ``clusters``: by the words of ``question``; ``profiles``: by the hash of the device they are for.
    """

    schema_version: Literal[1] = 1
    question: SweepQuestion
    models: dict[str, ModelSpec]
    clusters: dict[str, Cluster]
    profiles: dict[str, ProfileReference]
    price_per_device_hour: float | None
    top_k: int
    time_limit_s: float | None
    seed: int

    @property
    def sweep_id(self) -> str:
        """SHA-256 of the content and of the software that answers it."""
        return hashlib.sha256(f"{self.content_hash()}\0{software_signature()}".encode()).hexdigest()

    @property
    def options(self) -> SearchOptions:
        """How each cell is searched."""
        return SearchOptions(top_k=self.top_k, time_limit_s=self.time_limit_s, seed=self.seed)

    def cells(self) -> tuple[Cell, ...]:
        """Every combination, in order, each with its problem or why it is none."""

        def scaled(cluster: Cluster, num_devices: int) -> Cluster:
            return scale_cluster(cluster, num_devices, "/device_counts")

        def profile_of(device: Device) -> ProfileReference | None:
            return self.profiles.get(device.content_hash())

        sources = Sources(self.models.__getitem__, self.clusters.__getitem__, scaled, profile_of)
        return grid(self.question, sources)
