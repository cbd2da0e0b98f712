"""The origin of each value of a completed cluster: sentences for people, provenance for the document."""

from __future__ import annotations

from dataclasses import dataclass, field

from profiles.catalogue import builtin_clusters, load_cluster
from profiles.catalogue.cluster_files import CLUSTER_FOLDER
from profiles.cluster import Pool
from profiles.device import Provenance
from profiles.errors import ProfileMissing

OBSERVED = Provenance(confidence="measured", source="the machine's own tools, imported as a topology")


@dataclass(slots=True)
class Notes:
    """Collects one sentence a value; ``provenance`` only for what overrules the base."""

    sentences: list[str] = field(default_factory=list)
    provenance: dict[str, Provenance] = field(default_factory=dict)

    def topology(self, name: str, shown: object, why: str = "", source: Provenance = OBSERVED) -> None:
        """A value that the topology gives."""
        self.sentences.append(f"{name}: {shown}, from the topology" + (f" ({why})" if why else ""))
        self.provenance[name] = source

    def other(self, name: str, shown: object, where: str) -> None:
        """A value from the base, the catalogue or a constant."""
        self.sentences.append(f"{name}: {shown}, from {where}")

    def say(self, sentence: str) -> None:
        """Anything else worth telling."""
        self.sentences.append(sentence)


def catalogue_pools(device: str) -> dict[str, Pool]:
    """Catalogue clusters that are made of this device; only files that mention it are parsed."""
    found = {}
    for name in builtin_clusters():
        if device in (CLUSTER_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"):
            pool = load_cluster(name).pools[0]
            if pool.device.name == device:
                found[name] = pool
    return found


def agreed(values: dict[str, float]) -> float | None:
    """The one value that all catalogue clusters of a device have; None if they differ or there is none."""
    different = set(values.values())
    return different.pop() if len(different) == 1 else None


def missing(field_name: str, device: str) -> ProfileMissing:
    """The error for a value that nobody gave."""
    candidates = ", ".join(catalogue_pools(device)) or "the nearest catalogue cluster (meshwright clusters list)"
    return ProfileMissing(
        f"{field_name} is in no file given, and the catalogue does not agree on it",
        where=f"cluster.yaml#/{field_name}",
        hint=f"name a cluster to complete it from: --base NAME, one of {candidates}",
    )
