"""The strategies that nanotron can run.

huggingface/nanotron 0e0a27ea (2025-02-19, the month of the Ultra-Scale Playbook; between tags v0.5 and main).

- Schedules ``1f1b`` and ``afab`` (config/parallelism_config.py:23; parallel/pipeline_parallel/engine.py:165 and 222);
  1F1B needs at least pp - 1 micro-batches (engine.py:236-239); no interleaving (noted as undone at engine.py:191).
- Stages are dealt by cumulative cost of blocks (models/base.py:211-236), uneven ones allowed: ``dealing="by_compute"``.
- sp: ``tp_mode: REDUCE_SCATTER`` is on, ``ALL_REDUCE`` off (parallelism_config.py:24).
- Recompute: ``recompute_layer`` one switch for every decoder layer (parallelism_config.py:35; models/llama.py:715,
  749).
- ZeRO: ``zero_stage > 0`` builds ZeroDistributedOptimizer, which shards optimizer states over dp (helpers.py:381-388);
  higher numbers mean the same: 0 or 1.
- Overlap: DistributedDataParallel reduces in the last micro-batch's backward pass (engine.py:98-115, trainer.py:847);
  weights are gathered after the step (optim/zero.py): (True, False).
- overlap_tp: ``tp_linear_async_communication`` exists (parallelism_config.py:34; functional.py:118-) and overlaps the
  gather with a shard's product.  The fitted physics of the sweep (examples/bench_llama_7b.py:62-63 sets it) holds it in
  the measured seconds: one value, the fitted one (False).
- Experts: expert_parallel_size is parsed (parallelism_config.py:38) but used by examples/moe only, outside the models
  that the physics describes; ring attention came 2025-03-20 (b641237d), SmolLM3's MoE later: cp = ep = 1.
- Heads: heads % tp == 0 and kv_heads % tp == 0 (models/llama.py:343-350).
- Rank order: tp, dp, pp, ep from the inside (parallel/context.py:63-76).
- Devices: NVIDIA (context.py:50 "Only nccl backend"; torch.cuda, Triton norm, flash-attn).
"""

from __future__ import annotations

from planner.backends.backend import Space
from planner.backends.rules.column_rules import column_rules
from planner.backends.rules.columns import Columns
from planner.backends.rules.divisibility import heads
from planner.backends.rules.fp8_recipes import fp8_recipes
from planner.backends.rules.optimizers import optimizers
from planner.backends.rules.packed_sequences import packed_sequences
from planner.backends.rules.rule import RuleInput, RuleTable, SpaceRule
from planner.backends.rules.token_mixers import decoders_only
from planner.backends.rules.training_kinds import training_kinds


def _microbatches(given: RuleInput) -> str | None:
    s = given.strategy
    if s.schedule == "1f1b" and s.num_microbatches < s.pp - 1:
        return f"1f1b needs at least pp - 1 = {s.pp - 1} micro-batches, not {s.num_microbatches}"
    return None


COLUMNS = Columns(
    schedules=("1f1b", "gpipe"),
    expert_parallel=False,
    hybrid_sharding=False,
    recompute=("none", "full"),
    cp_kinds=(),
    zero_stages=(0, 1),
    zero_stages_with_pipeline=(0, 1),
    axis_orders=(0,),
    expert_tensor_parallel=False,
    optimizer_offload=False,
    activation_offload=False,
    overlap_ep=(False,),
    overlap_tp=False,
    overlap_data=((True, False),),
    uniform_recompute=True,
    whole_recompute=True,
    repeated_kv_heads=False,
)
RULES: tuple[SpaceRule, ...] = (
    SpaceRule(
        "P1",
        "nanotron 0e0a27ea parallel/pipeline_parallel/engine.py:236-239",
        _microbatches,
        ("num_microbatches", "micro_batch_size", "pp", "schedule"),
    ),
    SpaceRule("T1", "nanotron 0e0a27ea models/llama.py:343-350", heads, ("tp",)),
    *column_rules(COLUMNS, "nanotron 0e0a27ea config/parallelism_config.py:23-38"),
)
PACKED = packed_sequences("nanotron 0e0a27ea src/nanotron: document masks are not described here")
OPTIMIZERS = optimizers("nanotron 0e0a27ea helpers.py:328-351: adamW and sgd", has=("adam", "sgd"))
RECIPES = fp8_recipes("nanotron 0e0a27ea models/llama.py: src/nanotron/fp8 is in no model", has=())
SPACE = Space(
    COLUMNS,
    RuleTable(
        "nanotron",
        (
            training_kinds("nanotron 0e0a27ea src/nanotron: no adapters"),
            PACKED,
            OPTIMIZERS,
            RECIPES,
            decoders_only("nanotron 0e0a27ea src/nanotron/models: llama, starcoder2"),
        ),
        RULES,
    ),
)
