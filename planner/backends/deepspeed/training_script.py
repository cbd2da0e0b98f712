"""Which program runs on every rank?  ``train_deepspeed.py``, the same for all plans; the plan is in JSON beside it.

Its text is a data file: this package must not import torch.  The script builds a transformers model (data, tensor,
sequence and expert parallelism), or a ``PipelineModule`` whose ``_partition_layers`` is replaced by the plan's list
(DeepSpeed has no explicit stage list: ``runtime/pipe/module.py:396``).
"""

from __future__ import annotations

from pathlib import Path

TRAIN_SCRIPT = "train_deepspeed.py"


def training_script() -> str:
    """The text of ``train_deepspeed.py``."""
    return (Path(__file__).parent / f"{TRAIN_SCRIPT}.txt").read_text(encoding="utf-8")
