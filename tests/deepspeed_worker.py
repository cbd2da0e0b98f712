"""Asks the real DeepSpeed.  A process of its own: it imports torch and DeepSpeed, and pretends a world size.

``python deepspeed_worker.py`` reads one JSON object a line, ``{"config", "world_size", "data_parallel_size"}``, and
answers ``{"refused": message or null, "facts": {...}}``.  The data-parallel size is told through an object like the
parallel-state object that engines pass: without it ``DeepSpeedConfig`` would hold the batch against all ranks.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import warnings
from typing import Any
from unittest import mock


class Groups:
    """What DeepSpeedConfig asks of a parallel-state object."""

    def __init__(self, data_parallel_size: int) -> None:
        self.data_parallel_size = data_parallel_size

    def get_data_parallel_world_size(self) -> int:
        """Ranks over which the batch is divided."""
        return self.data_parallel_size


def verdict(request: dict[str, Any]) -> dict[str, Any]:
    """What DeepSpeedConfig makes of the config."""
    import deepspeed.comm
    from deepspeed.runtime.config import DeepSpeedConfig
    from deepspeed.runtime.zero.offload_config import OffloadDeviceEnum

    world_size = int(request["world_size"])
    with (
        mock.patch.object(deepspeed.comm, "get_rank", return_value=0),
        mock.patch.object(deepspeed.comm, "get_world_size", return_value=world_size),
    ):
        try:
            config = DeepSpeedConfig(request["config"], mpu=Groups(int(request["data_parallel_size"])))
        except Exception as error:
            return {"refused": f"{type(error).__name__}: {error}", "facts": {}}
    zero = config.zero_config
    facts = {
        "train_batch_size": config.train_batch_size,
        "micro_batch_size": config.train_micro_batch_size_per_gpu,
        "num_microbatches": config.gradient_accumulation_steps,
        "zero_stage": int(config.zero_optimization_stage),
        "overlap_comm": zero.overlap_comm,
        "prefetch": zero.prefetch_bucket_size,
        "offload": OffloadDeviceEnum(zero.offload_optimizer.device).value if zero.offload_optimizer else "none",
        "tp": config.tensor_parallel_config.autotp_size or 1,
        "overlap_tp": config.tensor_parallel_config.tp_overlap_comm,
        "ep": config.expert_parallel_config.autoep_size if config.expert_parallel_config.enabled else 1,
        "bf16": config.bfloat16_config.enabled,
        "fp16": config.float16_config.enabled,
        "gradients": config.grad_accum_dtype,
        "optimizer": config.optimizer_name,
        "stages": config.pipeline["stages"],
    }
    return {"refused": None, "facts": facts}


def main() -> None:
    """Answer until the input ends."""
    os.environ["DS_ACCELERATOR"] = "cpu"
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # DeepSpeed logs to stdout
    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        answers.write(json.dumps(verdict(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
