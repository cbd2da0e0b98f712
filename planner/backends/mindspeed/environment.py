"""The environment that a plan needs under MindSpeed.

The variables of MindSpeed-LLM's published scripts (examples/mcore/qwen3_moe/pretrain_qwen3_235b_a22b_4k_A3_ptd.sh at
197f863f, examples/mcore/deepseek3/pretrain_deepseek3_671b_4k_A3_ptd.sh at 015ce048), and HCCL_EXEC_TIMEOUT, the same
limit for a collective that runs, which those two leave at HCCL's default; network settings (HCCL_SOCKET_IFNAME,
GLOO_SOCKET_IFNAME, HCCL_IF_BASE_PORT) belong to the cluster's own profile.
"""

from __future__ import annotations

from planner.strategy.strategy import Strategy


def environment(strategy: Strategy) -> dict[str, str]:
    """Variables that every rank must see.

    CUDA_DEVICE_MAX_CONNECTIONS keeps its name on Ascend: Megatron demands 1 with tensor or context parallelism and
    forbids 1 with its FSDP (Megatron-LM core_v0.12.1 validate_args); the scripts set 1 always, 2 with FSDP.
    """
    return {
        "CUDA_DEVICE_MAX_CONNECTIONS": "2" if strategy.zero_stage >= 2 else "1",
        "CPU_AFFINITY_CONF": "1",
        "HCCL_CONNECT_TIMEOUT": "3600",
        "HCCL_EXEC_TIMEOUT": "3600",
        "PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True",
        "STREAMS_PER_DEVICE": "32",
        "TASK_QUEUE_ENABLE": "2",
    }
