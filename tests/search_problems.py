"""Random small planning problems: models, clusters and workloads that can be searched exhaustively.

Memory is drawn around what the model needs, so that relief, sharding and offload matter, and some problems have no
plan at all.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from planner.model.spec import AttentionSpec, LayerRun, LayerSpec, MlpSpec, ModelSpec, MoeSpec, MtpSpec
from planner.question.optimizers import OptimizerName
from planner.question.problem import UNRESTRICTED, Constraints, Problem, Workload
from profiles.cluster import Cluster, FabricLevel, Host, Pool, ScaleUp
from profiles.device import Device

Pin = int | str | bool

BACKENDS = (*(UNRESTRICTED,) * 3, "megatron", "deepspeed", "native")
OPTIMIZERS: tuple[OptimizerName, ...] = ("adam", "adam", "adam_bf16_states", "sgd", "muon")
NARROWINGS: tuple[dict[str, Pin], ...] = (
    {"cp": 1},
    {"tp": 1},
    {"dp": 1},
    {"dp": 2},
    {"pp": 2},
    {"pp": 1},
    {"zero_stage": 1},
    {"zero_stage": 3},
    {"recompute": "full"},
    {"recompute": "none", "cp": 1},
    {"schedule": "1f1b", "cp": 1},
    {"schedule": "interleaved"},
    {"schedule": "zbv"},
    {"axis_order": "tp-cp-ep-dp-pp", "sp": True},
    {"micro_batch_size": 1},
    {"optimizer_offload": False, "cp": 1},
    {"activation_offload": True},
)
"""Pins that keep a random problem small, drawn two at a time."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large random problems may be."""

    max_devices: int = 8
    max_layers: int = 6
    max_batch: int = 12
    narrowings: int = 2


def random_model(draw: random.Random, max_layers: int = 6) -> ModelSpec:
    """Dense, grouped-query, mixture of experts, mixed layer kinds, or with multi-token prediction."""
    heads = draw.choice([4, 6, 8, 12])
    hidden = heads * draw.choice([128, 256])
    dense = LayerSpec(
        attention=_attention(draw, heads),
        mlp=MlpSpec(intermediate_size=hidden * draw.choice([2, 3, 4]), gated=draw.random() < 0.7),
    )
    mixture = LayerSpec(attention=_attention(draw, heads), moe=_mixture(draw, hidden))
    window = _attention(draw, heads).model_copy(update={"sliding_window": 256})
    other = LayerSpec(attention=window, mlp=MlpSpec(intermediate_size=hidden * 4, gated=True))
    layers = draw.randint(4, max_layers)
    kinds: tuple[LayerSpec, ...]
    style = draw.choice(["dense", "dense", "mixture", "dense_first", "alternating"])
    if style == "dense":
        kinds, order = (dense,), [0] * layers
    elif style == "mixture":
        kinds, order = (mixture,), [0] * layers
    elif style == "dense_first":
        front = draw.randint(1, layers - 1)
        kinds, order = (mixture, dense), [1] * front + [0] * (layers - front)
    else:
        kinds, order = (dense, other), [index % 2 for index in range(layers)]
    return ModelSpec(
        name=f"random-{style}",
        family="custom",
        hidden_size=hidden,
        vocab_size=draw.choice([4_000, 32_000, 128_000]),
        layer_kinds=kinds,
        layer_runs=tuple(LayerRun(kind=kind, count=1) for kind in order),
        tie_embeddings=draw.random() < 0.25,
        learned_positions=draw.choice([0, 0, 4096]),
        max_sequence_length=4096,
        mtp=MtpSpec(num_layers=1, kind=order[-1]) if draw.random() < 0.2 else None,
    )


def plain_model(draw: random.Random, max_layers: int = 6) -> ModelSpec:
    """A llama or a mixtral: what every back-end can build."""
    heads = draw.choice([4, 8, 12])
    hidden = heads * 128
    mixture = draw.random() < 0.4
    layer = LayerSpec(
        attention=AttentionSpec(
            num_heads=heads, num_kv_heads=draw.choice([heads // 2, heads]), head_dim=128, v_head_dim=128
        ),
        mlp=None if mixture else MlpSpec(intermediate_size=4 * hidden, gated=True),
        moe=MoeSpec(num_experts=4, top_k=2, expert_intermediate_size=2 * hidden) if mixture else None,
    )
    return ModelSpec(
        name="random-plain",
        family="mixtral" if mixture else "llama",
        hidden_size=hidden,
        vocab_size=32_000,
        layer_kinds=(layer,),
        layer_runs=(LayerRun(kind=0, count=draw.randint(4, max_layers)),),
        max_sequence_length=4096,
    )


def _attention(draw: random.Random, heads: int) -> AttentionSpec:
    groups = [count for count in (1, 2, heads // 2, heads) if heads % count == 0]
    return AttentionSpec(num_heads=heads, num_kv_heads=draw.choice(groups), head_dim=128, v_head_dim=128)


def _mixture(draw: random.Random, hidden: int) -> MoeSpec:
    return MoeSpec(
        num_experts=draw.choice([4, 6, 8]),
        top_k=draw.choice([1, 2]),
        expert_intermediate_size=hidden * draw.choice([1, 2]),
        shared_intermediate_size=draw.choice([0, 0, hidden]),
    )


def random_cluster(draw: random.Random, max_devices: int = 8, memory_gib: float | None = None) -> Cluster:
    """One pool of 2 to ``max_devices`` devices with random rates; one fabric level now and then."""
    devices = draw.choice([count for count in (2, 3, 4, 4, 6, 8, 8, 12, 16) if count <= max_devices])
    per_node = draw.choice([size for size in (1, 2, 3, 4, 8) if devices % size == 0])
    memory = memory_gib if memory_gib is not None else 4.0 * 2 ** draw.uniform(0, 4)
    nodes = devices // per_node
    device = Device(
        name="random-device",
        vendor="NVIDIA",
        architecture=draw.choice(["hopper", "ampere"]),
        memory_bytes=int(memory * 2**30),
        memory_bandwidth_bytes_per_s=draw.uniform(0.5e12, 5e12),
        peak_flops_per_s={"bf16": draw.uniform(100e12, 1000e12)},
        achievable_matmul_fraction={"bf16": 0.75} if draw.random() < 0.5 else {},
    )
    kind = draw.choice(["switch", "switch", "mesh", "pcie"])
    scale_up = ScaleUp(
        kind=kind,  # type: ignore[arg-type]  # one of the declared literals
        domain_size=per_node,
        bandwidth_bytes_per_s=10 ** draw.uniform(10, 12),
        latency_s=10 ** draw.uniform(-6, -5),
        in_network_reduction=kind == "switch" and draw.random() < 0.5,
    )
    pool = Pool(
        device=device,
        num_nodes=nodes,
        devices_per_node=per_node,
        scale_up=scale_up,
        nics_per_node=draw.choice([1, per_node]),
        nic_bandwidth_bytes_per_s=10 ** draw.uniform(9, 11),
        host=Host(
            memory_bytes=int(draw.choice([2.0, 20.0, 200.0]) * per_node * 2**30),
            link_bandwidth_bytes_per_s=10 ** draw.uniform(9.5, 11),
        ),
    )
    fabric = (FabricLevel(name="leaf", num_nodes=2, oversubscription=2.0),) if draw.random() < 0.3 else ()
    return Cluster(name="random", pools=(pool,), fabric=fabric, price_per_device_hour=2.0)


def random_problem(seed: int, size: Size = Size(), backend: str | None = None) -> Problem:
    """Problem number ``seed``; the same number is always the same problem."""
    draw = random.Random(seed)
    drawn = draw.choice(BACKENDS)
    chosen = drawn if backend is None else backend
    free = chosen == UNRESTRICTED
    model = random_model(draw, size.max_layers) if free else plain_model(draw, size.max_layers)
    cluster = random_cluster(draw, size.max_devices)
    workload = Workload(
        global_batch_size=draw.choice([count for count in (2, 3, 4, 6, 8, 12, 16, 24) if count <= size.max_batch]),
        sequence_length=draw.choice([512, 1024, 2048]),
        optimizer=draw.choice(OPTIMIZERS) if free else "adam",
        gradient_dtype="fp32" if draw.random() < 0.7 else "bf16",
    )
    pins: dict[str, Pin] = {}
    for narrowing in draw.sample(NARROWINGS, size.narrowings):
        pins = narrowing | pins
    forbids = draw.choice([(), (), ("optimizer_offload",), ("overlap_ep",)])
    constraints = Constraints(
        pins=pins, forbids=tuple(name for name in forbids if name not in pins), backends=(chosen,)
    )
    return Problem(model=model, cluster=cluster, workload=workload, constraints=constraints)
