"""The behaviour of Accelerate 1.15.0 around the models that our script builds."""

from __future__ import annotations

from dataclasses import replace

from planner.backends.deepspeed.physics import DEEPSPEED
from planner.backends.hugging_face.physics import TRANSFORMERS
from planner.predict.physics.host import HOST_SPREAD

ACCELERATE = replace(
    TRANSFORMERS,
    name="accelerate",
    time_spread=0.163,
    studied_devices=8,
    host_spread=HOST_SPREAD,
    summary="Accelerate 1.15.0: FSDP2 around Hugging Face models",
    fp32_shards=True,
    regathers_zero2=True,
    deepspeed_where_needed=True,
    zero_all_reduces=DEEPSPEED.zero_all_reduces,
    reduce_bucket_elements=DEEPSPEED.reduce_bucket_elements,
    live_elements=DEEPSPEED.live_elements,
)
"""FSDP2 of fp32 parameters (accelerate 1.15.0, utils/fsdp_utils.py:768-885); without resharding after the forward pass
parameters are still dropped after each backward pass (torch 2.13.0, _fsdp_param_group.py:607-638).
``Accelerator.accumulate`` would keep whole gradients until the last micro-batch (accelerator.py:1166-1171); our script
asks for a reduction of each (sync_each_batch, accelerator.py:1285-1293), so they are ZeRO-2 and 3.  ZeRO-1 and
offloaded states go through DeepSpeed with its ``ds_config.json`` (``planner.backends.accelerate.way``): such plans are
sharded, reduced and held as ``DEEPSPEED``'s.

Nothing is fitted.  ``time_spread``: published runs of Hugging Face trainers on one to eight A100
(foundation-model-stack/fms-acceleration@876e2ed6f: transformers 4.48, FSDP, full and LoRA), 127 rows of the fit part:
0.048, a third wider; beside it 0.15, by which the median errors of 23 sources differ of which no row chose anything
(decision 0087), for those of trainers of other publications do.  A mixture of experts (PowerLM 3B, 14 rows) is at 0.81,
with twice and more in single rows: experts are
*not studied*.  None of these steps waits for its host, whose seconds are nanotron's: ``host_spread``."""
