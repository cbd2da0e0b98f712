"""The value of every field that we set: one table a section, the same words in both releases but for a few.

Only these fields are written; torchtitan's defaults stay for everything else.
"""

from __future__ import annotations

from typing import Any

from planner.backends.emission.layout import chunks_in_model_order, layout_of
from planner.backends.torchtitan.degrees import (
    POLICIES,
    SCHEDULES,
    replicate_degree,
    shard_degree,
)
from planner.backends.torchtitan.version import TOML_VERSION
from planner.plan.plan import ChunkPlan, Plan

Values = dict[str, Any]

HEAD_MODULE = {"0.3.0": "lm_head", "0.2.2": "output"}
"""What a release calls the vocabulary projection."""


def parallelism(plan: Plan, version: str) -> Values:
    """Degrees, schedule and stages of a plan."""
    s = plan.chosen()
    values: Values = {
        "data_parallel_replicate_degree": replicate_degree(s),
        "data_parallel_shard_degree": shard_degree(s),
        "fsdp_reshard_after_forward": POLICIES[s.zero_stage],
        "tensor_parallel_degree": s.tp,
        "context_parallel_degree": s.cp,
        "expert_parallel_degree": s.ep,
        "pipeline_parallel_degree": s.pp,
    }
    if version == TOML_VERSION:
        values["expert_tensor_parallel_degree"] = 1
        values["enable_async_tensor_parallel"] = s.overlap_tp
        # It would run forward and backward of DualPipeV side by side, which the plan does not count on.
        values["pipeline_parallel_expert_parallel_overlap"] = False
    else:
        values["enable_sequence_parallel"] = s.sp
        # The default, spmd_types, needs a torch newer than 2.13: "all parameters must be DTensors".
        values["spmd_backend"] = "partial_dtensor"
    if s.pp > 1:
        values["pipeline_parallel_schedule"] = SCHEDULES[s.schedule]
        values["pipeline_parallel_microbatch_size"] = s.micro_batch_size
        chunks = chunks_in_model_order(layout_of(plan))
        values["module_fqns_per_model_part"] = [module_names(chunk, version) for chunk in chunks]
    return values


def module_names(chunk: ChunkPlan, version: str) -> list[str]:
    """Modules of one model part."""
    layers = [f"layers.{index}" for index in range(chunk.first_layer, chunk.first_layer + chunk.num_layers)]
    head = ["norm", HEAD_MODULE[version]] if chunk.has_head else []
    return [*(["tok_embeddings"] if chunk.has_embedding else []), *layers, *head]


def training(plan: Plan, version: str) -> Values:
    """Batch and sequence; with a pipeline a rank's local batch is all of its micro-batches."""
    s, workload = plan.chosen(), plan.problem.workload
    values: Values = {
        "local_batch_size": s.micro_batch_size * (s.num_microbatches if s.pp > 1 else 1),
        "global_batch_size": workload.global_batch_size,
        "seq_len": workload.sequence_length,
    }
    if version != TOML_VERSION:
        # CUDA graphs are on by default and take neither a pipeline nor a dispatcher that waits for the host.
        values["disable_cuda_graphs"] = s.pp > 1 or s.ep > 1
    return values


def compiling(plan: Plan, version: str) -> Values:
    """The compiler, which async tensor parallelism and 8-bit matrix products need, and attention is slow without."""
    values: Values = {"enable": True, "components": ["model", "loss"]}
    if version != TOML_VERSION:
        values["enable_async_tensor_parallel"] = plan.chosen().overlap_tp
    return values


def float8_recipe(plan: Plan) -> str | None:
    """How 8-bit matrix products are scaled; None for bf16."""
    return "rowwise" if plan.problem.workload.precision == "fp8" else None
