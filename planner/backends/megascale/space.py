"""The strategies that MegaScale can run.

arXiv 2402.15627, sections 2 and 3.2: tensor parallelism with sequence parallelism, 1F1B and interleaved pipelines,
ZeRO-2 over the data-parallel ranks; its runs are dense models of 175B and 530B (section 6.1).  What the paper does not
name is left as in Megatron-LM of its time.
"""

from __future__ import annotations

from planner.backends.backend import Space
from planner.backends.rules.columns import Columns
from planner.backends.rules.fp8_recipes import fp8_recipes
from planner.backends.rules.optimizers import optimizers
from planner.backends.rules.packed_sequences import packed_sequences
from planner.backends.rules.rule import RuleTable
from planner.backends.rules.token_mixers import decoders_only
from planner.backends.rules.training_kinds import training_kinds
from planner.question.optimizers import OptimizerName

PACKED = packed_sequences("MegaScale (NSDI 2024): not said")
ADAM: tuple[OptimizerName, ...] = ("adam",)
OPTIMIZERS = optimizers("arXiv 2402.15627, section 3.1: LAMB beside Adam, which is no word here", has=ADAM)
RECIPES = fp8_recipes("arXiv 2402.15627: bf16", has=())
SPACE = Space(
    columns=Columns(
        schedules=("1f1b", "interleaved"),
        cp_kinds=(),
        zero_stages=(0, 1, 2),
        zero_stages_with_pipeline=(0, 1, 2),
        hybrid_sharding=False,
        group_factors=(1,),
        expert_parallel=False,
        expert_tensor_parallel=False,
        optimizer_offload=False,
        activation_offload=False,
        overlap_ep=(False,),
        uniform_recompute=True,
    ),
    rules=RuleTable(
        "megascale",
        (
            training_kinds("MegaScale (NSDI 2024): pre-training"),
            PACKED,
            OPTIMIZERS,
            RECIPES,
            decoders_only("MegaScale (NSDI 2024): GPT"),
        ),
        (),
    ),
)
