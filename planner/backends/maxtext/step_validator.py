"""JAX: the collectives that XLA compiles for the mesh of ``maxtext.yml``.

A small step on fake devices, see ``step_validator_worker.py``.  The mesh is shrunk to 64 devices and the layer to small
sizes that divide as the plan's do; what was shrunk is in the facts.  The stage axis is left out: one stage is compiled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.backends.checking.emitted import EmittedFolder
from planner.backends.checking.validator import Request, Validator
from planner.backends.maxtext.mesh_axes import read_mesh
from planner.backends.maxtext.read import parse_config
from planner.backends.maxtext.saved_tensors import TENSORS
from planner.backends.maxtext.validator import JAX_PACKAGES
from planner.backends.maxtext.version import CONFIG_FILE

JAX_VERSION = "0.10.2"
MOST_DEVICES = 64
MOST_WIDTH = 512
_AXES = ("tensor", "context", "expert", "fsdp", "data")


def request(folder: EmittedFolder) -> Request:
    """Mesh and layer of the config, both shrunk."""
    return step_request(parse_config(folder.files[CONFIG_FILE]))


def step_request(config: Mapping[str, Any], layers: int = 2) -> dict[str, Any]:
    """The step of a config: ``layers`` layers, their sizes kept where they are small."""
    whole = read_mesh(config).sizes
    axes = shrunk_axes(whole)
    tensor, shards = axes["tensor"], axes["fsdp"] * axes["expert"] * axes["context"]
    step = math.lcm(tensor, shards)
    sizes = {
        "hidden": _small(config["base_emb_dim"], step),
        "mlp": _small(config["base_mlp_dim"], tensor),
        "heads": _small(config["base_num_query_heads"], tensor, 4 * tensor),
        "head_dim": min(config.get("head_dim", 128), 16),
        "sequence": _small(config.get("max_target_length", 2048), axes["context"] * tensor * 2),
        "experts": config.get("num_experts", 1),
        "top_k": config.get("num_experts_per_tok", 1),
        "expert_mlp": _small(config.get("base_moe_mlp_dim", 0), tensor),
    }
    if sizes["experts"] > 1:
        sizes["experts"] = _small(sizes["experts"], axes["expert"], 4 * axes["expert"])
        sizes["top_k"] = min(sizes["top_k"], sizes["experts"])
        sizes["sequence"] = math.lcm(sizes["sequence"], sizes["experts"])
    samples = 2 * axes["data"] * axes["fsdp"] * axes["expert"]
    named = ("base_emb_dim", "base_mlp_dim", "base_num_query_heads", "num_experts")
    kept = [name for name in TENSORS if config.get(name) in ("device", "offload")]
    same = [config.get(key, 1) for key in named] == [sizes[k] for k in ("hidden", "mlp", "heads", "experts")]
    return {
        "axes": axes,
        "dimensions": {**sizes, "samples": samples, "layers": layers},
        "kept": kept if config.get("remat_policy") == "custom" else [],
        "shrunk": {axis: [whole[axis], size] for axis, size in axes.items() if size != whole[axis]}
        | ({} if same else {"layer": sizes}),
    }


def shrunk_axes(sizes: Mapping[str, int]) -> dict[str, int]:
    """At most 64 devices: the largest axes are cut to divisors, none of them to one."""
    axes = {axis: sizes[axis] for axis in _AXES}
    while math.prod(axes.values()) > MOST_DEVICES:
        axis = max(axes, key=lambda name: axes[name])
        size = axes[axis]
        axes[axis] = max((part for part in range(2, size) if size % part == 0), default=2)
        if axes[axis] == size:
            break
    return axes


def _small(size: int, step: int, most: int = MOST_WIDTH) -> int:
    """The size itself where it is small, else a small multiple of ``step``."""
    if size <= most and size % step == 0:
        return size
    return step * max(1, min(size, most) // (4 * step)) if size else 0


VALIDATOR = Validator(
    name="jax",
    default_version=JAX_VERSION,
    worker=Path(__file__).with_name("step_validator_worker.py"),
    applies=lambda folder: folder.backend == "maxtext" and CONFIG_FILE in folder.files,
    request=request,
    packages=lambda version: (f"jax=={version}", f"jaxlib=={version}", *JAX_PACKAGES[2:]),
    base_modules=("numpy", "scipy"),
)
