"""torchtitan's checkpoints: PyTorch's distributed checkpoint (DCP) loads onto any layout; its data loader does not.

Read at pytorch/torchtitan b5bcd76c; the data loader of v0.2.2 refuses the same (components/dataloader.py:137).
"""

from __future__ import annotations

from planner.backends.resuming import DATA_PARALLEL, LAYOUT, CheckpointFormat, LossEffect, Reshaping, Resuming

AT = "pytorch/torchtitan b5bcd76c"
RESUMING = Resuming(
    (
        CheckpointFormat(
            "PyTorch DCP",
            frozenset({0, 1, 2, 3}),
            (
                Reshaping(
                    LAYOUT - DATA_PARALLEL,
                    f"{AT} torchtitan/components/checkpointer/dcp.py:95-113, 394 (optimizer states by parameter name)",
                ),
                Reshaping(
                    LAYOUT,
                    f"{AT} torchtitan/components/checkpointer/dcp.py:95-113, 394;"
                    " torchtitan/components/data/loader.py:163",
                    steps=(
                        "--checkpoint.exclude_from_loading data_loader: the saved position of the data belongs"
                        " to the old data parallelism and is refused",
                    ),
                ),
            ),
            (
                (
                    DATA_PARALLEL,
                    "the position in the data is lost with the data loader's state: move the start of the data"
                    f" on yourself ({AT} docs/checkpoint.md:36-42)",
                ),
            ),
        ),
    ),
    (
        LossEffect(
            DATA_PARALLEL,
            "no",
            "each data-parallel rank reads a part of the data of its own, so another number of ranks trains"
            " other samples"
            " in each step",
            f"{AT} torchtitan/components/data/loader.py:98-116",
        ),
        LossEffect(
            frozenset({"pp"}),
            "no",
            "generators are seeded by the pipeline rank; over the other axes DTensor keeps one random state",
            f"{AT} torchtitan/distributed/utils.py:172-301",
            "dropout",
        ),
    ),
)
