"""What follows from the hardware: MaxText's ``hardware``, attention kernel, fp8 recipe and variables.

Variables are XLA's scheduler flags, and how much memory JAX may take.  The flags are those of MaxText's own recipes
(maxtext 0.2.5 configs/gpu/a3/*/*.sh, configs/tpu/v5p/*.sh), each one only where the plan has the communication that it
is about.  XLA aborts on a flag that it does not know.
"""

from __future__ import annotations

from typing import Any

from planner.backends.maxtext.mesh_axes import axis_sizes
from planner.plan.plan import Plan
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy

AMD = frozenset({"cdna2", "cdna3", "cdna4", "cdna5"})
NVIDIA = frozenset({"volta", "ampere", "ada", "hopper", "blackwell", "rubin"})


_TPU_ALWAYS = (
    "--xla_tpu_enable_async_collective_fusion=true",
    "--xla_tpu_enable_async_collective_fusion_fuse_all_gather=true",
    "--xla_tpu_enable_async_collective_fusion_multiple_steps=true",
    "--xla_tpu_overlap_compute_collective_tc=true",
    "--xla_enable_async_all_gather=true",
)
_TPU_PERMUTE = "--xla_enable_async_collective_permute=true"
_TPU_DATA = (
    "--xla_tpu_enable_data_parallel_all_reduce_opt=true",
    "--xla_tpu_data_parallel_opt_different_sized_ops=true",
)
OUTSIDE_FRACTION = 0.06
"""Device memory that JAX leaves to the context and the communicators where no margin was asked."""
_GPU_ALWAYS = ("--xla_gpu_enable_latency_hiding_scheduler=true",)


def is_tpu(architecture: str) -> bool:
    """Whether the device is a TPU; everything else is taken for a GPU."""
    return architecture.startswith("tpu")


def attention_keys(architecture: str, s: Strategy) -> dict[str, Any]:
    """Kernel and context parallelism.  A ring and ulysses run on tokamax's splash attention (TPU), or cuDNN (GPU).

    Ulysses ranks see whole samples, so nothing is balanced.  Packed samples would need segment limits on GPUs and are
    not for a ring of latent attention: off.
    """
    keys: dict[str, Any] = {"attention": "flash" if is_tpu(architecture) else "cudnn_flash_te", "packing": False}
    if s.cp > 1:
        ring = s.cp_kind == "ring"
        keys |= {"context_parallel_strategy": "ring" if ring else "ulysses", "context_parallel_load_balance": ring}
        if is_tpu(architecture):
            keys["use_tokamax_splash"] = True
    return keys


LENGTHS_READ, MOST_SEGMENTS = 256, 256


def packing_keys(workload: Workload) -> dict[str, Any]:
    """Packing of Grain's pipeline, with room for as many short documents as fill a sample; none where none is asked.

    Transformer Engine's attention needs a limit (configs/types.py:5329).
    """
    said = workload.sequences
    if said is None or said.packed_by is None:
        return {}
    shortest = max(1, round(min(said.lengths(LENGTHS_READ))))
    limit = max(1, min(MOST_SEGMENTS, -(-workload.sequence_length // shortest)))
    way = "concat_then_split" if said.packed_by == "concatenated" else "best_fit"
    return {"packing": True, "grain_packing_type": way, "max_segments_per_seq": limit}


def quantization_keys(architecture: str) -> dict[str, Any]:
    """How matrix products run in fp8.  Transformer Engine's scaling of this step works with gradient accumulation."""
    if is_tpu(architecture):
        return {"quantization": "fp8_full", "use_qwix_quantization": True}
    return {"quantization": "te_fp8_currentscaling"}


def environment(plan: Plan) -> dict[str, str]:
    """Variables that every process sees."""
    s = plan.chosen()
    sizes = axis_sizes(s)
    if is_tpu(plan.problem.cluster.pools[0].device.architecture):
        flags = list(_TPU_ALWAYS)
        flags += [_TPU_PERMUTE] if s.pp > 1 or s.cp_kind == "ring" else []
        flags += _TPU_DATA if sizes["data"] > 1 else []
        return {"LIBTPU_INIT_ARGS": " ".join(flags)}
    margin = plan.problem.constraints.memory_margin_fraction
    free = 1.0 - (OUTSIDE_FRACTION if margin is None else margin)
    return {"XLA_FLAGS": " ".join(_GPU_ALWAYS), "XLA_PYTHON_CLIENT_MEM_FRACTION": f"{free:.2f}"}
