"""DeepSpeed's checkpoints: rigid as they are saved, of any data parallelism once they are converted to universal ones.

Read at microsoft/DeepSpeed 38327e07 (0.16.5).
"""

from __future__ import annotations

from planner.backends.resuming import DATA_PARALLEL, LAYOUT, CheckpointFormat, LossEffect, Reshaping, Resuming

AT = "microsoft/DeepSpeed 38327e07 deepspeed"
RIGID = Reshaping(frozenset(), f"{AT}/runtime/engine.py:3111-3119 (another dp is refused)")
STEPS = (
    "python -m deepspeed.checkpoint.ds_to_universal --input_folder CHECKPOINT/global_stepN"
    " --output_folder CHECKPOINT/global_stepN_universal",
    'set "checkpoint": {"load_universal": true} in the DeepSpeed configuration; latest_universal is then read',
)
UNIVERSAL_SOURCE = f"{AT}/checkpoint/ds_to_universal.py:469-543, {AT}/runtime/engine.py:2905-2912"
FORMATS = (
    CheckpointFormat(
        "DeepSpeed ZeRO-0, ZeRO-1 and ZeRO-2",
        frozenset({0, 1, 2}),
        (
            RIGID,
            Reshaping(
                LAYOUT - {"ep", "etp"},
                UNIVERSAL_SOURCE,
                steps=STEPS,
                converts=True,
            ),
        ),
        (
            (
                frozenset({"tp", "pp"}),
                "the training script must save the universal checkpoint's patterns of its parameters"
                f" (UNIVERSAL_CHECKPOINT_INFO), or --inject_missing_state be given"
                f" ({AT}/checkpoint/ds_to_universal.py:464-482)",
            ),
        ),
    ),
    CheckpointFormat(
        "DeepSpeed ZeRO-3",
        frozenset({3}),
        (
            RIGID,
            # Its parts are merged over the data-parallel ranks alone.
            Reshaping(DATA_PARALLEL | {"cp"}, f"{UNIVERSAL_SOURCE}, merged by dp at :393", steps=STEPS, converts=True),
        ),
    ),
)
RESUMING = Resuming(
    FORMATS,
    (
        LossEffect(
            DATA_PARALLEL | {"micro_batch_size", "num_microbatches"},
            "no",
            "the loss of each micro-batch is divided by the number of gradient accumulation steps, so micro-batches of"
            " unequal token counts weigh tokens otherwise",
            f"{AT}/runtime/engine.py:1907",
            "uneven tokens",
        ),
    ),
)
