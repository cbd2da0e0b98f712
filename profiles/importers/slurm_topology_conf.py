"""Slurm's ``topology.conf`` (tree, block, ring) and what ``scontrol show topology`` prints.

Recognised by lines of ``SwitchName=``, ``BlockName=`` or ``RingName=``. Keys in any case, values bare or quoted,
hosts as hostlist expressions (``node[01-16,20]``), lines continued with a backslash, comments after ``#``.
``LinkSpeed`` has no unit and is not used by Slurm either. A file may hold both a tree and blocks: blocks become the
inner tiers. Source: SchedMD/slurm, manual page topology.conf(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from profiles.errors import DocumentInvalid
from profiles.importing.block_tiers import block_tiers
from profiles.importing.format import Format, ReadOptions
from profiles.importing.hostlist import expand_hostlist
from profiles.importing.imported import Imported
from profiles.importing.log_lines import clean_line
from profiles.importing.slurm_switches import add_switch, settings_of
from profiles.importing.source_file import Head, SourceFile
from profiles.importing.switch_tree import SwitchTree
from profiles.topology import NetworkTier, Topology

_LINE = re.compile(r"^[ \t]*(?:SwitchName|BlockName|RingName)[ \t]*=[ \t]*\S", re.IGNORECASE | re.MULTILINE)
_NAMES = ("switchname", "blockname", "ringname")
_SIZES = re.compile(r"\d{1,7}(?:,\d{1,7})*\Z")


@dataclass(slots=True)
class _Content:
    """What the lines describe."""

    tree: SwitchTree = field(default_factory=SwitchTree)
    blocks: list[list[str]] = field(default_factory=list)
    block_sizes: list[int] = field(default_factory=list)
    rings: list[list[str]] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, nodes: list[str]) -> list[int]:
        """Numbers of nodes in the order in which they are first seen."""
        return [self.numbers.setdefault(node, len(self.numbers)) for node in nodes]


def _matches(head: Head) -> bool:
    """A line that names a switch, a block or a ring."""
    return bool(_LINE.search(head.text))


def _logical_lines(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Lines with continuations joined and comments removed; the number is that of the first."""
    start, text = 0, ""
    for number, raw in file.lines():
        line = clean_line(number, raw.split("#", 1)[0]).text
        start = start or number
        if line.endswith("\\"):
            text += line[:-1] + " "
            continue
        yield start, text + line
        start, text = 0, ""
    if text:
        yield start, text


def _read(files: Sequence[SourceFile], options: ReadOptions) -> Imported:
    file = files[0]
    imported = Imported(tool="slurm")
    content = _Content()
    for number, line in _logical_lines(file):
        pairs = settings_of(line)
        if not pairs:
            continue
        try:
            _take(pairs, content, f"{file.where}:{number}", imported)
        except DocumentInvalid as error:
            imported.bad(number, error.what, error.hint or "")
    imported.topology = _topology(content, file.where)
    return imported


def _take(pairs: dict[str, str], content: _Content, where: str, imported: Imported) -> None:
    """One line.  Raises DocumentInvalid for a line that makes no sense."""
    kind = next((name for name in _NAMES if name in pairs), None)
    if "blocksizes" in pairs:
        if not _SIZES.match(pairs["blocksizes"]):
            raise DocumentInvalid("BlockSizes is no list of numbers", where=where, hint="write BlockSizes=4,16")
        content.block_sizes = [int(size) for size in pairs["blocksizes"].split(",")]
    if kind is None:
        if "blocksizes" not in pairs:
            imported.skip("line of another setting")
        return
    nodes = expand_hostlist(pairs.get("nodes", ""), where)
    if not nodes and not pairs.get("switches"):
        raise DocumentInvalid(f"{kind} has neither Nodes nor Switches", where=where, hint="add Nodes=node[01-16]")
    if kind == "switchname":
        add_switch(content.tree, pairs, where)
        content.number(content.tree.nodes[pairs[kind]])
    elif kind == "blockname":
        content.blocks.append(nodes)
        content.number(nodes)
    else:
        content.rings.append(nodes)
        content.number(nodes)


def _topology(content: _Content, where: str) -> Topology:
    if not content.numbers:
        raise DocumentInvalid("no line names a node", where=where, hint="is this the whole topology.conf?")
    tiers: list[NetworkTier] = []
    irregular: list[str] = []
    if content.blocks:
        groups = [content.number(block) for block in content.blocks]
        found, notes = block_tiers(groups, content.block_sizes, len(content.numbers))
        tiers += found
        irregular += notes
    if content.rings:
        groups = [content.number(ring) for ring in content.rings]
        tiers.append(NetworkTier(name="ring", groups=tuple(tuple(group) for group in groups), kind="block"))
        irregular.append(f"{len(groups)} rings: nodes talk to their neighbours in the ring")
    if content.tree.numbers:
        content.tree.numbers = content.numbers
        found, notes = content.tree.tiers(where)
        tiers += found
        irregular += notes
    return Topology(num_nodes=len(content.numbers), tiers=tuple(tiers), irregular=tuple(irregular))


FORMAT = Format(
    name="slurm-topology-conf", title="Slurm topology.conf: tree, blocks, rings", matches=_matches, read=_read
)
