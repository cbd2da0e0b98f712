"""``profile import --cluster-out``: a cluster file from the topology that was just read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from planner.cli.commands.profile.import_outcome import Outcome
from planner.cli.reading import write_file
from planner.errors import DocumentInvalid


def write_cluster(outcomes: Sequence[Outcome], path: Path, base: str | None, *, dry_run: bool) -> str:
    """Complete a cluster by the imported topologies and write it; returns the path.  Raises DocumentInvalid."""
    from profiles.catalogue import load_cluster
    from profiles.complete_cluster import cluster_yaml, complete_cluster, merge_topologies

    topologies = [
        outcome.result.imported.topology
        for outcome in outcomes
        if outcome.usable and outcome.result.imported is not None and outcome.result.imported.topology is not None
    ]
    if not topologies:
        raise DocumentInvalid(
            "none of the files describes a topology",
            where="--cluster-out",
            hint="give the output of nvidia-smi topo -m, ibnetdiscover, a Slurm topology.conf, ...",
        )
    topology = merge_topologies(topologies)
    cluster = complete_cluster(topology, load_cluster(base) if base is not None else None)
    if not dry_run:
        write_file(path, cluster_yaml(cluster))
    return str(path)
