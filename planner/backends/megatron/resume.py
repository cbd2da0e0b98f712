"""Megatron-LM's checkpoints and what a change of layout does to its loss curve.

Read at NVIDIA/Megatron-LM d98e8a64 (0.20 in development).
"""

from __future__ import annotations

from planner.backends.resuming import DATA_PARALLEL, LAYOUT, CheckpointFormat, LossEffect, Reshaping, Resuming

AT = "NVIDIA/Megatron-LM d98e8a64"
RESHARDABLE = "--dist-ckpt-optim-fully-reshardable"
WRITTEN = "which emitted files have for Adam where the hosts hold the gathered states"
RNG = (
    frozenset({"tp", "pp"}),
    f"the states of the random generators are not restored ({AT} megatron/training/checkpointing.py:2573-2596)",
)
EFFECTS = (
    LossEffect(
        DATA_PARALLEL | {"micro_batch_size", "num_microbatches"},
        "exactly",
        "a step trains the same samples: the sampler deals consecutive indices from the number of consumed"
        " samples, and a global batch is micro_batch_size x dp x micro-batches of them",
        f"{AT} megatron/training/datasets/data_samplers.py:144-180",
    ),
    LossEffect(
        DATA_PARALLEL | {"micro_batch_size", "num_microbatches"},
        "no",
        "each micro-batch's mean counts alike unless --calculate-per-token-loss is given: where masks or packing leave"
        " unequal token counts, other micro-batches weigh tokens otherwise",
        f"{AT} megatron/core/pipeline_parallel/schedules.py:336-346",
        "uneven tokens",
    ),
    LossEffect(
        frozenset({"tp", "pp", "ep", "etp"}),
        "no",
        "dropout masks come from generators that are seeded by the ranks: seed + 100 x pipeline rank, + 2718 +"
        " tensor rank,"
        " and by expert rank in the experts",
        f"{AT} megatron/training/initialize.py:448, megatron/core/tensor_parallel/random.py:492-509",
        "dropout",
    ),
    LossEffect(
        frozenset({"micro_batch_size"}),
        "no",
        "the balance loss of aux_loss is a product of means over the tokens of one micro-batch of a tp x cp group:"
        " another size of micro-batch is another loss",
        f"{AT} megatron/core/transformer/moe/router.py:410-447",
        "experts",
    ),
    LossEffect(
        frozenset({"micro_batch_size", "tp", "cp"}),
        "no",
        "with --moe-expert-capacity-factor an expert's places follow from the tokens that are routed together on"
        " a rank,"
        " so other tokens are dropped; without it (as these files are written) none are",
        f"{AT} megatron/core/transformer/moe/moe_utils.py:248-266",
        "experts",
    ),
    LossEffect(
        frozenset({"tp"}),
        "up to rounding",
        "the vocabulary is padded to a multiple of --make-vocab-size-divisible-by x tp; the padded rows of"
        " embedding and"
        " head change, and loading allows their shapes to differ",
        f"{AT} megatron/training/vocab_utils.py:58, megatron/core/models/common/language_module/language_module.py:462",
    ),
)
TORCH_DIST = CheckpointFormat(
    "torch_dist",
    frozenset({0, 1}),
    (
        Reshaping(
            DATA_PARALLEL | {"cp"},
            f"{AT} megatron/training/checkpointing.py:551-558 (dp_reshardable is the default),"
            " megatron/core/optimizer/distrib_optimizer.py:1474-1478",
        ),
        Reshaping(
            LAYOUT,
            f"{AT} megatron/training/checkpointing.py:2648-2658, megatron/core/optimizer/distrib_optimizer.py:127-131",
            saved_with=f"{RESHARDABLE}, {WRITTEN}",
        ),
    ),
    (RNG,),
)
FSDP_DTENSOR = CheckpointFormat(
    "fsdp_dtensor",
    frozenset({2, 3}),
    (
        Reshaping(
            LAYOUT - {"pp", "vpp"},
            f"{AT} megatron/core/optimizer/distrib_optimizer.py:127-131, 1485-1488 (each parameter a DTensor)",
        ),
    ),
    (RNG,),
)
RESUMING = Resuming((TORCH_DIST, FSDP_DTENSOR), EFFECTS)
