"""Accelerate's checkpoints: PyTorch's distributed checkpoint under FSDP2, DeepSpeed's under DeepSpeed.

Read at huggingface/accelerate 16cb6eb8.
"""

from __future__ import annotations

from dataclasses import replace

from planner.backends.deepspeed.resume import FORMATS
from planner.backends.deepspeed.resume import RESUMING as DEEPSPEED
from planner.backends.resuming import LAYOUT, CheckpointFormat, Reshaping, Resuming

AT = "huggingface/accelerate 16cb6eb8 src/accelerate/utils"
RESUMING = Resuming(
    (
        CheckpointFormat(
            "PyTorch DCP (SHARDED_STATE_DICT, FSDP2's default)",
            frozenset({2, 3}),
            (
                Reshaping(
                    LAYOUT - {"pp", "vpp"},
                    f"{AT}/dataclasses.py:2031-2034, {AT}/fsdp_utils.py:261, 409; files of use_dcp=False are of"
                    " one layout"
                    " (:118)",
                ),
            ),
        ),
        replace(FORMATS[0], zero_stages=frozenset({0, 1})),
    ),
    DEEPSPEED.effects,
)
