"""The content of ``maxtext.yml``: overrides of the release's ``base.yml``, model sizes from our description.

``global batch = per_device_batch_size x devices x gradient_accumulation_steps`` (configs/types.py:4426).  A pipeline
takes all its micro-batches from one such batch (``num_pipeline_microbatches``) and accumulates nothing more.
"""

from __future__ import annotations

import json
import math
from typing import Any

from planner.backends.maxtext.decoder_blocks import DecoderBlock, model_keys
from planner.backends.maxtext.hardware import attention_keys, is_tpu, packing_keys, quantization_keys
from planner.backends.maxtext.mesh_axes import MESH_AXES, axis_sizes, mesh_keys, mesh_split
from planner.backends.maxtext.saved_tensors import remat_keys
from planner.backends.maxtext.version import MAXTEXT_VERSION
from planner.backends.rules.optimizer_recipe import (
    BETAS,
    CLIP_GRADIENT_NORM,
    EPSILON,
    LEARNING_RATE,
    WEIGHT_DECAY,
)
from planner.backends.rules.rule import scale_up_devices
from planner.errors import BackEndRefused
from planner.plan.plan import Plan
from planner.strategy.strategy import Strategy

DROPOUT_RATE = 0.1


def config(plan: Plan, block: DecoderBlock) -> dict[str, dict[str, Any]]:
    """Heading -> keys, for a plan that breaks no rule."""
    s, problem = plan.chosen(), plan.problem
    architecture = problem.cluster.pools[0].device.architecture
    return {
        "Model": {"model_name": "default", **model_keys(problem.model, block, problem.workload.sequence_length)},
        "Batch": batch_keys(s) | {"max_target_length": problem.workload.sequence_length},
        "Mesh": _mesh(plan),
        "Sharded data parallelism": {"shard_optimizer_over_data": s.zero_stage == 1},
        "Pipeline": _pipeline(s, problem.model.num_layers),
        "Kept tensors": {
            **remat_keys(s.recompute, s.recompute_modules, offload=s.activation_offload),
            "optimizer_memory_host_offload": s.optimizer_offload,
        },
        "Attention": attention_keys(architecture, s) | packing_keys(problem.workload),
        "Numbers": _numbers(plan, architecture),
        "Yours": {
            "dataset_type": "synthetic",
            "enable_checkpointing": False,
            "steps": 100,
            "learning_rate": LEARNING_RATE,
            "adam_b1": BETAS[0],
            "adam_b2": BETAS[1],
            "adam_eps": EPSILON,
            "adam_weight_decay": WEIGHT_DECAY,
            "gradient_clipping_threshold": CLIP_GRADIENT_NORM,
        },
    }


def batch_keys(s: Strategy) -> dict[str, Any]:
    """``per_device_batch_size`` may be a fraction; MaxText truncates its product with the number of devices."""
    in_pipeline = s.num_microbatches if s.pp > 1 else 1
    samples = s.micro_batch_size * s.dp * in_pipeline
    size = samples / s.world_size
    while int(s.world_size * size) < samples:
        size = math.nextafter(size, math.inf)
    return {
        "per_device_batch_size": int(size) if size == int(size) else size,
        "gradient_accumulation_steps": 1 if s.pp > 1 else s.num_microbatches,
    }


def _mesh(plan: Plan) -> dict[str, Any]:
    s, cluster = plan.chosen(), plan.problem.cluster
    split = mesh_split(axis_sizes(s), scale_up_devices(cluster))
    if split is None:
        raise BackEndRefused("the mesh cannot be laid out over slices", where="--backend maxtext", hint="see rule S1")
    tpu = is_tpu(cluster.pools[0].device.architecture)
    return {
        "hardware": "tpu" if tpu else "gpu",
        "num_slices": split.num_slices,
        "mesh_axes": list(MESH_AXES),
        **mesh_keys(split),
        # An axis of the plan may need a part of one axis of the torus.
        **({"allow_split_physical_axes": True} if tpu else {}),
    }


def _pipeline(s: Strategy, num_layers: int) -> dict[str, Any]:
    """A repeat of the circular pipeline is a chunk of every stage: chunk c is repeat c // pp of stage c % pp."""
    if s.pp == 1:
        return {}
    layers = num_layers // s.num_chunks
    return {
        "num_layers_per_pipeline_stage": layers,
        "num_pipeline_repeats": s.vpp,
        "num_pipeline_microbatches": s.num_microbatches,
        # The release advises against it with a pipeline (configs/base.yml:480), but takes the output of a stage of one
        # layer out of its pair only with it: without, the first step fails (layers/pipeline.py:793, :449).
        "scan_layers": layers == 1,
    }


def _numbers(plan: Plan, architecture: str) -> dict[str, Any]:
    workload = plan.problem.workload
    keys: dict[str, Any] = {
        "dtype": "bfloat16",
        "weight_dtype": "float32",
        "grad_dtype": "float32" if workload.gradient_dtype == "fp32" else "bfloat16",
        "opt_type": "adamw",
        "enable_dropout": workload.dropout,
    }
    keys |= {"dropout_rate": DROPOUT_RATE} if workload.dropout else {}
    return keys | (quantization_keys(architecture) if workload.precision == "fp8" else {})


def config_text(sections: dict[str, dict[str, Any]]) -> str:
    """The file: JSON values, which are YAML too."""
    lines = [
        f"# MaxText {MAXTEXT_VERSION}: overrides of its base.yml.  Keys under 'Yours' are free; the rest is the plan.",
        "base_config: base.yml",
    ]
    for heading, keys in sections.items():
        if keys:
            lines += ["", f"# {heading}", *(f"{key}: {_value(value)}" for key, value in keys.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """YAML 1.1 readers take ``1e-05`` for text; they want a point."""
    if isinstance(value, float) and "e" in repr(value) and "." not in repr(value):
        return repr(value).replace("e", ".0e")
    return json.dumps(value)
