"""Which variables does the plan ask for?  XLA's scheduler flags, and how much memory JAX may take.

The flags are those of MaxText's own recipes (maxtext 0.2.5 configs/gpu/a3/*/*.sh, configs/tpu/v5p/*.sh), each one only
where the plan has the communication that it is about.  XLA aborts on a flag that it does not know.
"""

from __future__ import annotations

from planner.backends.maxtext.hardware import is_tpu
from planner.backends.maxtext.mesh_axes import axis_sizes
from planner.plan import Plan

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
_GPU_ALWAYS = ("--xla_gpu_enable_latency_hiding_scheduler=true",)


def environment(plan: Plan) -> dict[str, str]:
    """Variables that every process sees."""
    s = plan.chosen()
    sizes = axis_sizes(s)
    if is_tpu(plan.problem.cluster.pools[0].device.architecture):
        flags = list(_TPU_ALWAYS)
        flags += [_TPU_PERMUTE] if s.pp > 1 or s.cp_kind == "ring" else []
        flags += _TPU_DATA if sizes["data"] > 1 else []
        return {"LIBTPU_INIT_ARGS": " ".join(flags)}
    free = 1.0 - plan.problem.constraints.memory_margin_fraction
    return {"XLA_FLAGS": " ".join(_GPU_ALWAYS), "XLA_PYTHON_CLIENT_MEM_FRACTION": f"{free:.2f}"}
