"""Training logs as Megatron-LM prints them, for tests of calibration: 16 devices, tp 4, pp 2, Llama-3.1-8B's sizes."""

from __future__ import annotations

from collections.abc import Mapping

from planner.question.problem import Workload

MEGATRON = Workload(global_batch_size=128, sequence_length=8192)
TIMES_MS = (19_000.0, 4_100.0, 4_200.0, 4_300.0)
"""The first reading includes start-up."""


def megatron_log(changes: Mapping[str, object] | None = None, reserved_mb: float = 40_000.0) -> str:
    """A block of arguments, iteration lines and one memory report; ``changes`` replace arguments."""
    arguments: dict[str, object] = {
        "bf16": True,
        "context_parallel_size": 1,
        "expert_model_parallel_size": 1,
        "ffn_hidden_size": 14336,
        "global_batch_size": MEGATRON.global_batch_size,
        "hidden_size": 4096,
        "log_interval": 1,
        "micro_batch_size": 2,
        "num_attention_heads": 32,
        "num_layers": 32,
        "overlap_grad_reduce": True,
        "overlap_param_gather": True,
        "pipeline_model_parallel_size": 2,
        "recompute_granularity": "selective",
        "seq_length": MEGATRON.sequence_length,
        "sequence_parallel": True,
        "tensor_model_parallel_size": 4,
        "use_distributed_optimizer": True,
        "virtual_pipeline_model_parallel_size": None,
        "world_size": 16,
    }
    arguments |= changes or {}
    block = [f"  {name} {'.' * (48 - len(name))} {value}" for name, value in sorted(arguments.items())]
    lines = [
        "------------------------ arguments ------------------------",
        *block,
        "-------------------- end of arguments ---------------------",
        *_iterations(TIMES_MS, arguments["global_batch_size"]),
        f"[Rank 0] (after 4 iterations) memory (MB) | allocated: 21000.0 | max allocated: 34000.0 | reserved: "
        f"{reserved_mb} | max reserved: {reserved_mb}",
    ]
    return "\n".join(lines) + "\n"


def _iterations(times_ms: tuple[float, ...], batch: object) -> list[str]:
    return [
        f" [2025-08-01 07:19:{30 + index}] iteration {index + 1:8}/    5000 |"
        f" consumed samples: {128 * (index + 1):12} |"
        f" elapsed time per iteration (ms): {time_ms:.1f} | throughput per GPU (TFLOP/s/GPU): 400.0 |"
        f" learning rate: 1.0E-06 | global batch size: {batch:5} | lm loss: 9.0E+00 | loss scale: 1.0 |"
        f" grad norm: 2.0 | number of skipped iterations:   0 | number of nan iterations:   0 |"
        for index, time_ms in enumerate(times_ms)
    ]


NO_ARGUMENTS = "\n".join(_iterations(TIMES_MS, 128)) + "\n"
