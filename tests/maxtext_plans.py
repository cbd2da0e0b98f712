"""Random plans for built-in models on TPU and GPU clusters, as MaxText would have to run them; not costed."""

from __future__ import annotations

import random
from collections.abc import Iterator

from planner.backends.emission.emission import Emission
from planner.backends.maxtext.decoder_blocks import BLOCKS
from planner.errors import BackEndRefused
from planner.model.builtin import builtin_models
from planner.model.load import load_model
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from profiles.catalogue import load_cluster
from tests.emitter import emitter
from tests.plan_factory import even_layers, make_plan

emit = emitter("maxtext")

CLUSTERS = ("tpu-v5p", "dgx-h100", "gb200-nvl72", "mi300x-8")


def random_emissions(count: int, seed: int) -> Iterator[Emission]:
    """``count`` emissions; plans that a rule refuses are drawn again."""
    draw = random.Random(seed)
    models = [load_model(name) for name in sorted(builtin_models())]
    models = [model for model in models if model.family in BLOCKS and model.vision is None]
    while count:
        model = draw.choice(models)
        strategy = _strategy(draw, experts=model.has_experts)
        cluster = load_cluster(draw.choice(CLUSTERS), None)
        per_node = cluster.pools[0].devices_per_node
        if strategy.world_size % per_node or model.num_layers < strategy.num_chunks:
            continue
        workload = Workload.model_validate(
            {
                "global_batch_size": strategy.global_batch_size,
                "sequence_length": min(draw.choice([2048, 4096, 8192]), model.learned_positions or 8192),
                "precision": draw.choice(["bf16", "bf16", "fp8"]),
                "gradient_dtype": draw.choice(["fp32", "bf16"]),
                "dropout": draw.random() < 0.1,
            }
        )
        placed = load_cluster(cluster.name, strategy.world_size)
        layers = even_layers(model.num_layers, strategy.num_chunks)
        try:
            yield emit(make_plan(strategy, model, placed, workload, layers_per_chunk=layers), "torchrun")
        except BackEndRefused:
            continue
        count -= 1


def _strategy(draw: random.Random, *, experts: bool) -> Strategy:
    tp, pp, cp = draw.choice([1, 1, 2, 4, 8]), draw.choice([1, 1, 2, 4]), draw.choice([1, 1, 1, 2, 4])
    ep = draw.choice([1, 2, 4, 8]) if experts else 1
    vpp = draw.choice([1, 1, 2, 4]) if pp > 1 else 1
    zero = 3 if cp * ep > 1 else draw.choice([0, 1, 3, 3])
    selective = draw.choice([("norm", "activation"), ("attention_core", "norm", "activation"), ("norm", "mlp")])
    recompute = draw.choice(["selective", "full"])
    values = {
        "tp": tp,
        "sp": tp > 1,
        "cp": cp,
        "cp_kind": draw.choice(["ring", "all_to_all"]) if cp > 1 else "none",
        "ep": ep,
        "etp": tp if experts else 1,
        "pp": pp,
        "vpp": vpp,
        "dp_replicate": draw.choice([1, 1, 2]) if zero == 3 else 1,
        "dp_shard": ep * draw.choice([1, 2, 3, 4, 8, 16]),
        "micro_batch_size": draw.choice([1, 2, 3]),
        "num_microbatches": pp * draw.choice([1, 2, 4]),
        "schedule": "1f1b" if pp == 1 else "looped_bfs" if vpp > 1 else "gpipe",
        "zero_stage": zero,
        "recompute": recompute,
        "recompute_modules": selective if recompute == "selective" else (),
        "optimizer_offload": zero > 0 and draw.random() < 0.2,
        "activation_offload": pp == 1 and draw.random() < 0.2,
    }
    return Strategy.from_dict(values)
