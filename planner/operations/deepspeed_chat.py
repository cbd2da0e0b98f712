"""DeepSpeed's configuration as DeepSpeed-Chat's programs build it from their own arguments.

deepspeedai/DeepSpeedExamples 45b4b715 applications/DeepSpeed-Chat: ``training/step1_supervised_finetuning/main.py``
(step 2 has the same arguments) and ``dschat/utils/ds_utils.py:14-77``.  Its other settings are DeepSpeed's own to fill
in; fp16 is the default type.
"""

from __future__ import annotations

import json

from planner.model.megatron_flags import MegatronFlags

ARGUMENTS = frozenset({"zero-stage", "offload", "dtype", "deepspeed"})


def configuration(trainer: MegatronFlags) -> str | None:
    """The file's text; None for a launch that says no ZeRO stage beside a model's name.

    A stage that the script does not decide is a finding of ``trainer``.
    """
    if not {"zero-stage", "model-name-or-path"} <= trainer.names:
        return None
    device = "cpu" if "offload" in trainer.names else "none"
    zero = {
        "stage": trainer.integer("zero-stage", minimum=0) or 0,
        "overlap_comm": True,
        "offload_param": {"device": device},
        "offload_optimizer": {"device": device},
        "stage3_prefetch_bucket_size": 30_000_000,
    }
    each = trainer.integer("per-device-train-batch-size") or 16
    rounds = trainer.integer("gradient-accumulation-steps") or 1
    kind = trainer.text("dtype") or "fp16"
    if kind not in ("fp16", "bf16"):
        trainer.refuse("dtype", f"'{kind[:40]}' is not known", "write fp16 or bf16")
    batch = {"train_micro_batch_size_per_gpu": each, "gradient_accumulation_steps": rounds}
    return json.dumps({"zero_optimization": zero, kind: {"enabled": True}, **batch})
