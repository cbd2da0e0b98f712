"""The plan's degrees as MaxText's mesh, and the part of each axis that stays inside a slice.

MaxText lays every axis out twice: ``ici_*`` inside a slice (a TPU slice, or the GPUs that one NVLink domain or host
joins) and ``dcn_*`` across slices.  Axes here are listed outermost first, in the plan's rank order::

    stage (pp), data (replicas), fsdp x expert (sharded data parallelism), context (cp), tensor (tp)

MaxText's own order puts ``expert`` innermost; the config names its axes (``mesh_axes``), so the plan's order is kept:
tensor ranks are neighbours.  Between layers the tensor axis splits activations over their width (``activation_embed``,
base.yml:637), which keeps and sends what sequence parallelism does: so tp > 1 is sp, and ``tensor_sequence``, which
splits tokens instead, is left at one.

Sources: maxtext 0.2.5 configs/base.yml:636 (axes), :766-793 (degrees), configs/types.py:5560-5603 (degrees by axis),
:4612 (stage goes before data), utils/max_utils.py:462 (products).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from planner.backends.rules.foreign_names import foreign_names
from planner.strategy.strategy import Strategy

AXES = ("stage", "data", "fsdp", "expert", "context", "tensor")
"""The axes that a plan uses, outermost first."""
KEYS: Mapping[str, str] = {
    "stage": "pipeline",
    "data": "data",
    "fsdp": "fsdp",
    "expert": "expert",
    "context": "context",
    "tensor": "tensor",
}
"""Axis -> its word in ``ici_<word>_parallelism`` and ``dcn_<word>_parallelism``."""
MESH_AXES = foreign_names(
    """
    diloco stage data fsdp fsdp_transpose expert context context_usp_ulysses context_autoregressive tensor
    tensor_sequence autoregressive
    """
)
"""Every axis of the release, in the plan's order; those that no plan uses have size one."""


@dataclass(frozen=True, slots=True)
class MeshSplit:
    """Sizes of the axes inside a slice and across slices; their product is the mesh."""

    ici: Mapping[str, int]
    dcn: Mapping[str, int]

    @property
    def num_slices(self) -> int:
        """Slices of the job."""
        return math.prod(self.dcn.values())

    @property
    def sizes(self) -> dict[str, int]:
        """Whole size of every axis."""
        return {axis: self.ici[axis] * self.dcn[axis] for axis in AXES}


def axis_sizes(s: Strategy) -> dict[str, int]:
    """Size of every axis.  With ZeRO-3 data parallelism is fsdp x expert inside replicas, else it is replicas."""
    sharded = s.zero_stage == 3
    return {
        "stage": s.pp,
        "data": s.dp_replicate if sharded else s.dp,
        "fsdp": s.dp_shard // s.ep if sharded else 1,
        "expert": s.ep if sharded else 1,
        "context": s.cp,
        "tensor": s.tp,
    }


def mesh_split(sizes: Mapping[str, int], devices_per_slice: int) -> MeshSplit | None:
    """Fill slices from the innermost axis outwards; None when consecutive ranks cannot fill them so.

    One axis may straddle: its inner part is in the slice, its outer part across.
    """
    world = math.prod(sizes.values())
    left = min(devices_per_slice, world) if devices_per_slice else world
    if world % left:
        return None
    ici = dict.fromkeys(AXES, 1)
    for axis in reversed(AXES):
        inside = min(sizes[axis], left)
        if sizes[axis] % inside or left % inside:
            return None
        ici[axis] = inside
        left //= inside
    return MeshSplit(ici, {axis: sizes[axis] // ici[axis] for axis in AXES})


def mesh_keys(split: MeshSplit) -> dict[str, int]:
    """The degrees as config keys; every one is written, none is left to be inferred (-1)."""
    keys = {f"dcn_{KEYS[axis]}_parallelism": split.dcn[axis] for axis in AXES}
    return keys | {f"ici_{KEYS[axis]}_parallelism": split.ici[axis] for axis in AXES}


def read_mesh(config: Mapping[str, object]) -> MeshSplit:
    """The degrees of a config that ``config_keys`` has checked; a missing key is MaxText's default, 1."""

    def sizes(level: str) -> dict[str, int]:
        found = {axis: config.get(f"{level}_{KEYS[axis]}_parallelism", 1) for axis in AXES}
        return {axis: size if isinstance(size, int) else 1 for axis, size in found.items()}

    return MeshSplit(sizes("ici"), sizes("dcn"))
