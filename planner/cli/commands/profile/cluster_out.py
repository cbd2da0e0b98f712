"""``profile import --cluster-out``: a cluster file from the topologies that were just read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from planner.errors import DocumentInvalid
from planner.operations.reading import write_file
from profiles.import_outcomes import Outcome, topologies_of


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """A cluster that was completed: where it goes, its text, and where each value comes from."""

    path: Path
    text: str
    notes: tuple[str, ...]

    def write(self) -> None:
        """Write it whole or not at all.  Raises DocumentInvalid."""
        write_file(self.path, self.text)


def complete(outcomes: Sequence[Outcome], path: Path, base: str | None, device: str | None) -> ClusterFile:
    """Complete a cluster by the imported topologies; nothing is written yet.

    Raises DocumentInvalid (no topology), ProfileMissing (a number that no file gives), Conflict (files disagree).
    """
    from profiles.catalogue import load_cluster
    from profiles.complete_cluster import cluster_yaml, complete_cluster
    from profiles.merge_topologies import merge_topologies

    topologies = topologies_of(outcomes)
    if not topologies:
        raise DocumentInvalid(
            "none of the files describes a topology",
            where="--cluster-out",
            hint="give the output of nvidia-smi topo -m, ibnetdiscover, a Slurm topology.conf, ...",
        )
    cluster, notes = complete_cluster(
        merge_topologies(topologies),
        base=load_cluster(base) if base is not None else None,
        device=device,
        name=path.stem,
    )
    return ClusterFile(path, cluster_yaml(cluster), tuple(notes))
