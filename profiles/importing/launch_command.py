"""Ranks and nodes that a launch line asked for: srun, mpirun, mpiexec, prun, aprun, jsrun.

Logs often begin with the command that made them (a shell trace, a document).  Only switches with one meaning are
used; where ranks and nodes contradict each other, nothing is claimed about ranks per node.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LAUNCHER = re.compile(r"(?:^|[\s/$>'\"`;&|(])(srun|mpirun(?:_rsh)?|mpiexec(?:\.hydra)?|orterun|prun|aprun)\s")
_RANKS = re.compile(r"\s(?:-np?|-c(?=\s+\d+\s)|--np|--ntasks)[= ]?\s*(\d{1,7})(?=\s|$)")
_SRUN_RANKS = re.compile(r"\s(?:-n\s*|--ntasks[= ])(\d{1,7})(?=\s|$)")
_SRUN_NODES = re.compile(r"\s(?:-N\s*|--nodes[= ])(\d{1,6})(?=\s|$)")
_PER_NODE = re.compile(
    r"\s(?:--ntasks-per-node[= ]|-ppn\s*|-npernode\s+|--npernode\s+|-perhost\s+|-N\s*)(\d{1,5})(?=\s|$)"
)
_SRUN_PER_NODE = re.compile(r"\s--ntasks-per-node[= ](\d{1,5})(?=\s|$)")
_PPR_NODE = re.compile(r"ppr:(\d{1,5}):node")


@dataclass(frozen=True, slots=True)
class Launched:
    """What a launch line says; None = it does not say."""

    num_ranks: int | None = None
    num_nodes: int | None = None
    ranks_per_node: int | None = None


def launched(text: str) -> Launched | None:
    """What the launch command in a line of text asks for; None if the line holds none."""
    match = _LAUNCHER.search(text)
    if match is None:
        return None
    command = " " + text[match.end() :]
    if match.group(1) == "srun":
        ranks, nodes = _first(_SRUN_RANKS, command), _first(_SRUN_NODES, command)
        per_node = _first(_SRUN_PER_NODE, command)
        if ranks is None and nodes is not None and per_node is None:
            # srun starts one task a node where it is told nothing else; an allocation may still say otherwise.
            return Launched(None, nodes, None)
    else:
        ranks, nodes = _first(_RANKS, command), None
        per_node = _first(_PPR_NODE, command) or _first(_PER_NODE, command)
    return _completed(ranks, nodes, per_node)


def _completed(ranks: int | None, nodes: int | None, per_node: int | None) -> Launched:
    if ranks is None and nodes is not None and per_node is not None:
        ranks = nodes * per_node
    if nodes is None and ranks is not None and per_node is not None and ranks % per_node == 0:
        nodes = ranks // per_node
    if per_node is None and ranks is not None and nodes is not None and ranks % nodes == 0:
        per_node = ranks // nodes
    if ranks is not None and nodes is not None and per_node is not None and nodes * per_node != ranks:
        per_node = None
    return Launched(ranks, nodes, per_node)


def _first(pattern: re.Pattern[str], command: str) -> int | None:
    match = pattern.search(command)
    return int(match.group(1)) or None if match else None
