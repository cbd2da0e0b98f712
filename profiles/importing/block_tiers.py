"""The larger blocks that Slurm builds from base blocks: ``BlockSizes=8,16,32`` joins two and four of them.

Base blocks are the lowest tier; block sizes are planned nodes, so 16 over 8 means two consecutive base blocks whatever
they hold.  Source: SchedMD/slurm, manual page topology.conf(5), topology/block.
"""

from __future__ import annotations

from collections.abc import Sequence

from profiles.importing.switch_tree import irregularities
from profiles.topology import NetworkTier


def block_tiers(
    blocks: Sequence[Sequence[int]], sizes: Sequence[int], num_nodes: int
) -> tuple[tuple[NetworkTier, ...], tuple[str, ...]]:
    """Tiers of base blocks and of each larger size, and what is irregular."""
    base = tuple(tuple(sorted(block)) for block in blocks)
    tiers = [NetworkTier(name="block", groups=base, kind="block")]
    irregular = irregularities("block", base, num_nodes)
    for size in sizes[1:]:
        if not sizes[0] or size % sizes[0]:
            irregular.append(f"block size {size} is no multiple of the base size {sizes[0]}")
            continue
        step = size // sizes[0]
        groups = tuple(
            tuple(sorted(node for block in base[start : start + step] for node in block))
            for start in range(0, len(base), step)
        )
        tiers.append(NetworkTier(name=f"block-{size}", groups=groups, kind="block"))
        irregular += irregularities(f"block-{size}", groups, num_nodes)
    return tuple(tiers), tuple(irregular)
