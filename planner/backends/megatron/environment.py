"""The environment that a plan needs under Megatron.

Only what follows from the plan; network settings (NCCL_IB_HCA and the like) belong to the cluster's own profile.
"""

from __future__ import annotations

from planner.strategy.strategy import Strategy


def is_blackwell_or_later(architecture: str) -> bool:
    """Whether the device's compute capability is 10 or more (Megatron: ``get_device_arch_version() >= 10``)."""
    return architecture.lower().startswith(("blackwell", "rubin", "feynman"))


def max_connections(strategy: Strategy, architecture: str) -> str | None:
    """CUDA_DEVICE_MAX_CONNECTIONS, None = leave as it is.

    FSDP refuses 1 (arguments.py:1148), so CUDA's default 8 is set to override an inherited 1.  Expert overlap wants
    32 (arguments.py:1425).  Otherwise tensor or context parallelism before Blackwell demands 1
    (arguments.py:1413-1439): launch order then keeps collectives ahead of compute.
    """
    if strategy.overlap_ep:
        return "32"
    if strategy.zero_stage >= 2:
        return "8"
    if (strategy.tp > 1 or strategy.cp > 1) and not is_blackwell_or_later(architecture):
        return "1"
    return None


def environment(strategy: Strategy, architecture: str, *, fine_grained_offload: bool) -> dict[str, str]:
    """Variables that every rank must see."""
    variables = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    connections = max_connections(strategy, architecture)
    if connections is not None:
        variables["CUDA_DEVICE_MAX_CONNECTIONS"] = connections
    if fine_grained_offload:
        variables["NVTE_CPU_OFFLOAD_V1"] = "1"
    return variables
