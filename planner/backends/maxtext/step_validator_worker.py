"""Compiles a small transformer step on fake devices with MaxText's shardings, and reads XLA's collectives.

Nothing runs: XLA partitions and compiles for CPU devices that are not there (``xla_force_host_platform_device_count``).
The step is a stack of decoder layers without embedding and head, its gradients taken for weights and input; logical
dimensions are sharded as in MaxText's ``logical_axis_rules``, layers are checkpointed as by its ``custom`` policy.
All numbers are fp32: a CPU has no other collectives, so sizes are told in elements.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from planner.backends.checking.answers import serve

MOST_DEVICES = 64
AXES = ("data", "fsdp", "expert", "context", "tensor")
BATCH = ("data", "fsdp", "expert")
SHARDS = ("fsdp", "context", "expert")
HEADS = "tensor"


class Step:
    """The step of one request: dimensions, mesh and shardings."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.jax, self.numpy = import_module("jax"), import_module("jax.numpy")
        self.sizes = {axis: int(request["axes"].get(axis, 1)) for axis in AXES}
        self.dims = {name: int(size) for name, size in request["dimensions"].items()}
        self.kept = tuple(request["kept"])
        self.checkpoint_name = import_module("jax.ad_checkpoint").checkpoint_name
        sharding = import_module("jax.sharding")
        self.spec, self.named = sharding.PartitionSpec, sharding.NamedSharding
        count = 1
        for size in self.sizes.values():
            count *= size
        array = import_module("numpy").array(self.jax.devices()[:count]).reshape(tuple(self.sizes.values()))
        self.mesh = sharding.Mesh(array, AXES, axis_types=(sharding.AxisType.Auto,) * len(AXES))

    def place(self, *spec: Any) -> Any:
        """A sharding of the mesh."""
        return self.named(self.mesh, self.spec(*spec))

    def put(self, value: Any, *spec: Any) -> Any:
        """A value, told where it is."""
        return self.jax.lax.with_sharding_constraint(value, self.place(*spec))

    def keep(self, value: Any, name: str) -> Any:
        """A value that the checkpoint policy may know by name."""
        return self.checkpoint_name(value, name)

    def layer(self, weights: dict[str, Any], x: Any) -> Any:
        """Attention, then an MLP or experts; queries with keys and values, and gate with up, are one product each."""
        x = x + self.attention(weights, self.numpy.tanh(x))
        mix = self.experts if "router" in weights else self.mlp
        return self.put(x + mix(weights, self.numpy.tanh(x)), *self.between())

    def between(self) -> tuple[Any, ...]:
        """Where a layer's input is: the tensor axis splits its width (activation_embed)."""
        return BATCH, "context", "tensor"

    def attention(self, weights: dict[str, Any], h: Any) -> Any:
        """Every head has keys and values of its own; a ring is written as a gather."""
        einsum, split = self.numpy.einsum, (BATCH, "context", None, HEADS, None)
        mixed = self.keep(self.put(einsum("bsh,hcnd->bscnd", h, weights["qkv"]), *split), "qkv_proj")
        query = mixed[:, :, 0]
        # Keys and values of the whole sample: all-gather context parallelism.
        both = self.put(mixed[:, :, 1:], BATCH, None, None, HEADS, None)
        scores = einsum("bsnd,btnd->bnst", query, both[:, :, 0])
        context = einsum("bnst,btnd->bsnd", self.jax.nn.softmax(scores, axis=-1), both[:, :, 1])
        context = self.keep(self.put(context, BATCH, "context", HEADS, None), "context")
        return self.keep(self.put(einsum("bsnd,ndh->bsh", context, weights["out"]), *self.between()), "out_proj")

    def mlp(self, weights: dict[str, Any], h: Any) -> Any:
        """Gated."""
        einsum = self.numpy.einsum
        both = self.put(einsum("bsh,hcf->bscf", h, weights["up"]), BATCH, "context", None, HEADS)
        both = self.keep(both, "mlpwi")
        inner = self.jax.nn.silu(both[:, :, 0]) * both[:, :, 1]
        return self.keep(self.put(einsum("bsf,fh->bsh", inner, weights["down"]), *self.between()), "mlpwo")

    def experts(self, weights: dict[str, Any], h: Any) -> Any:
        """Every expert gets the same number of a sample's rows (capacity factor 1), as MaxText's dense path."""
        einsum, jax = self.numpy.einsum, self.jax
        rows = self.dims["sequence"] * self.dims["top_k"] // self.dims["experts"]
        scores = jax.nn.softmax(einsum("bsh,hx->bsx", h, weights["router"]), axis=-1)
        # Which rows go where only decides values, not sizes: every row a fixed share of each slot.
        slots = self.put(self.numpy.broadcast_to(scores[..., None], (*scores.shape, rows)), BATCH, None, None, None)
        sent = self.put(einsum("bsh,bsxc->xbch", h, slots), None, BATCH, None, None)
        there: tuple[Any, ...] = ("expert", ("data", "fsdp"), None, None)
        sent = self.keep(self.put(sent, *there), "moe_x_sorted")
        both = self.put(einsum("xbch,xhki->xbcki", sent, weights["expert_up"]), *there, None)
        both = self.keep(both, "moe_mlpwi_0")
        inner = jax.nn.silu(both[:, :, :, 0]) * both[:, :, :, 1]
        back = self.put(einsum("xbci,xih->xbch", inner, weights["expert_down"]), *there)
        back = self.keep(self.put(back, None, BATCH, None, None), "moe_mlpwo")
        return self.put(einsum("xbch,bsxc->bsh", back, slots), *self.between())

    def parameters(self) -> dict[str, tuple[tuple[int, ...], tuple[Any, ...]]]:
        """Shape and sharding of every weight of a layer."""
        d = self.dims
        hidden, heads, width = d["hidden"], d["heads"], d["head_dim"]
        found: dict[str, tuple[tuple[int, ...], tuple[Any, ...]]] = {
            "qkv": ((hidden, 3, heads, width), (SHARDS, None, HEADS, None)),
            "out": ((heads, width, hidden), (HEADS, None, SHARDS)),
        }
        if d["experts"] > 1:
            inside = ("fsdp", "context")
            found["router"] = ((hidden, d["experts"]), (None, None))
            found["expert_up"] = ((d["experts"], hidden, 2, d["expert_mlp"]), ("expert", inside, None, None))
            found["expert_down"] = ((d["experts"], d["expert_mlp"], hidden), ("expert", None, inside))
        else:
            found["up"] = ((hidden, 2, d["mlp"]), (SHARDS, None, HEADS))
            found["down"] = ((d["mlp"], hidden), (HEADS, SHARDS))
        return found

    def compiled(self) -> Any:
        """The step, compiled."""
        jax, d = self.jax, self.dims
        policy = jax.checkpoint_policies.save_only_these_names(*self.kept) if self.kept else None
        layer = jax.checkpoint(self.layer, policy=policy)

        def loss(stack: list[dict[str, Any]], x: Any) -> Any:
            for weights in stack:
                x = layer(weights, x)
            return self.numpy.sum(x * x)

        def shape(size: tuple[int, ...], spec: tuple[Any, ...]) -> Any:
            return jax.ShapeDtypeStruct(size, self.numpy.float32, sharding=self.place(*spec))

        stack = [{name: shape(*each) for name, each in self.parameters().items()} for _ in range(d["layers"])]
        x = shape((d["samples"], d["sequence"], d["hidden"]), self.between())
        out = ([{name: each.sharding for name, each in weights.items()} for weights in stack], x.sharding)
        return jax.jit(jax.grad(loss, argnums=(0, 1)), out_shardings=out).lower(stack, x).compile()


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """Compile, then read the collectives and the memory of a device."""
    yield "compile"
    compiled = Step(request).compiled()
    sizes = {axis: int(request["axes"].get(axis, 1)) for axis in AXES}
    facts["collectives"] = import_module("hlo_collectives").collectives(compiled.as_text(), sizes)
    memory = compiled.memory_analysis()
    facts |= {"argument_bytes": memory.argument_size_in_bytes, "temporary_bytes": memory.temp_size_in_bytes}
    facts["shrunk"] = request["shrunk"]


def prepare(overlay: Path) -> None:
    """Devices that are not there; the reader of what was compiled stands beside this script."""
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={MOST_DEVICES}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    sys.path.append(str(Path(__file__).parent))


if __name__ == "__main__":
    serve(stages, prepare, said=lambda error: " ".join(str(error).split()))
