"""The switches above named nodes: from Slurm's topology (file or ``scontrol show topology``) or from named leaves.

``SwitchName=leaf1 Nodes=n[001-032]`` and ``SwitchName=spine1 Switches=leaf[1-4]`` (topology.conf(5), Slurm 22.05), or
one leaf a line, ``leaf1: n[001-032]``.  Importers of other formats number nodes and keep no names, so they cannot say
which named node sits where.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.errors import DocumentInvalid
from profiles.importing.hostlist import expand_hostlist
from profiles.importing.slurm_switches import add_switch, settings_of
from profiles.importing.switch_tree import SwitchTree, tier_name

_HINT = "lines of `scontrol show topology`, or one leaf a line: leaf1: n[001-032]"


@dataclass(frozen=True, slots=True)
class Switches:
    """For each tier from the leaves up its name, and the switch above each node."""

    tiers: tuple[tuple[str, dict[str, str]], ...]

    def of(self, nodes: Sequence[str], where: str) -> list[list[str]]:
        """[tier][node]: the switch.  Raises DocumentInvalid for nodes that the topology does not name."""
        unknown = [node for node in nodes if node not in self.tiers[0][1]]
        if unknown:
            more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
            raise DocumentInvalid(
                f"the topology has no leaf for {', '.join(unknown[:5])}{more}",
                where=where,
                hint="name them under their leaf in the topology, or leave them out of the nodes",
            )
        return [[above.get(node, "elsewhere") for node in nodes] for _, above in self.tiers]


def read_switches(text: str, where: str = "--topology") -> Switches:
    """Raises DocumentInvalid for lines of another form, nodes under two leaves, and switches in a ring."""
    tree = SwitchTree()
    for line in filter(None, (line.partition("#")[0].strip() for line in text.splitlines())):
        settings = settings_of(line)
        if "switchname" in settings:
            add_switch(tree, settings, where)
        elif ":" in line:
            name, _, listed = line.partition(":")
            tree.add(name.strip(), nodes=[host for word in listed.split() for host in expand_hostlist(word, where)])
        else:
            raise DocumentInvalid(f"{line[:60]!r} names neither a switch nor a leaf", where=where, hint=_HINT)
    leaf_of: dict[str, str] = {}
    for leaf, members in tree.nodes.items():
        for node in members:
            if leaf_of.setdefault(node, leaf) != leaf:
                raise DocumentInvalid(
                    f"{node} is under {leaf_of[node]} and under {leaf}", where=where, hint="keep it under one leaf"
                )
    if not leaf_of:
        raise DocumentInvalid("the topology names no nodes", where=where, hint=_HINT)
    return Switches(_tiers(leaf_of, tree.switches, where))


def _tiers(leaf_of: dict[str, str], below: dict[str, list[str]], where: str) -> tuple[tuple[str, dict[str, str]], ...]:
    above: dict[str, str] = {}
    for switch, children in below.items():
        for child in children:
            above.setdefault(child, switch)
    found = [(tier_name(1), leaf_of)]
    while any(switch in above for switch in found[-1][1].values()):
        found.append(
            (tier_name(len(found) + 1), {node: above.get(switch, switch) for node, switch in found[-1][1].items()})
        )
        if len(found) > len(below) + 1:
            raise DocumentInvalid("the switches form a ring", where=where, hint="check Switches=")
    return tuple(found)
