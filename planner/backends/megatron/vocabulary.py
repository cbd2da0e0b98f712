"""The rows that Megatron adds to the vocabulary, and the number of parameters that they are on a stage.

Megatron rounds the vocabulary up to a multiple of ``--make-vocab-size-divisible-by`` x tp (megatron-core 0.19.2
training/vocab_utils.py:45).  A plan is made for the model as it is, whatever runs it, so these rows are not in its
numbers: fewer than 128 rows a rank and table, each ``hidden_size`` wide.
"""

from __future__ import annotations

from planner.backends.megatron.model_flags import VOCABULARY_MULTIPLE
from planner.model.spec import ModelSpec
from planner.plan.plan import Plan, StagePlan


def padded_vocabulary(vocab_size: int, tp: int) -> int:
    """Rows of Megatron's tables, all tensor-parallel ranks together."""
    multiple = VOCABULARY_MULTIPLE * tp
    return -(-vocab_size // multiple) * multiple


def padding_parameters(plan: Plan, stage: StagePlan) -> int:
    """Parameters that a rank of the stage holds beyond the plan's count."""
    model, tp = plan.problem.model, plan.chosen().tp
    rows = padded_vocabulary(model.vocab_size, tp) - model.vocab_size
    return rows * model.hidden_size * num_tables(model, stage) // tp


def num_tables(model: ModelSpec, stage: StagePlan) -> int:
    """Vocabulary tables of a stage: token table, head, and the copies that a tied head or MTP needs far from it."""
    tables = 0
    for chunk in stage.chunks:
        tables += chunk.has_embedding or chunk.num_mtp_layers > 0
        tables += chunk.has_head and not (model.tie_embeddings and chunk.has_embedding)
    return tables
