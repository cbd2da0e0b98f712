"""Which strategies can this software run?

NVIDIA/Megatron-LM tag v2.5 (e269e20064, 2021-08-10, the merge of the scripts of arXiv 2104.04473).

- Schedules: 1F1B, and interleaved with ``--num-layers-per-virtual-pipeline-stage`` (megatron/schedules.py:28-42;
  arguments.py:573); there is no other.  Interleaved: pp > 2 (arguments.py:119), micro-batches % pp == 0
  (schedules.py:33-36), the group is pp (schedules.py:148-175; no flag for another).
- Layers: num_layers % pp == 0 (model/transformer.py:551), num_layers % vpp == 0 (:564); every chunk holds
  num_layers / pp / vpp layers (:569).  vpp itself has no upper limit below layers / pp; the paper uses 1 and 2
  (arXiv 2104.04473, section 5.3.2).
- sp: no flag; ``--sequence-parallel`` came on 2022-04-28 (cfd2e21607, arXiv 2205.05198), first tag with it 23.04
  (arguments.py:778).
- Recompute: ``--checkpoint-activations`` (arguments.py:393) replays all layers, ``--checkpoint-num-layers`` (:400) is
  the length of a replayed block (model/transformer.py:615-619).  v2.6 (2021-08-27) replaces it by
  ``--activations-checkpoint-method uniform|block`` (its arguments.py:417-433); ``block`` replays the first N layers of
  a stage, so for ``megatron==2.6`` say ``whole_recompute=False``.  Selective: 2022-05-16 (bbab79f869).
- ZeRO: none; ``--use-distributed-optimizer``: 2022-02-10 (329fe5820f), merged 2022-06-08 (d07d29df14).
- Data parallelism: ``--DDP-impl local`` (default, arguments.py:578) all-reduces after the last backward pass
  (training.py:368-372): overlap off; ``torch`` (training.py:246) overlaps with the last micro-batch through no_sync
  (schedules.py:118-119), without a pipeline only, and excludes fp32 accumulation (arguments.py:152-154).
- cp: 2023-10-12 (292543d342); experts: 2021-12-17 (be136206d2), expert parallelism 2023-10-06 (e8c22152ea); overlap
  of gradients in ``local``: 2023-09-05 (2d5220a424).
- Rank order tp, dp, pp (mpu/initialize.py:110-117, 153-156).
- Devices: NVIDIA ("Megatron requires CUDA", megatron/initialize.py:47).
- Models: GPT, BERT, T5 with learned positions, LayerNorm, GELU and full key-value heads: arguments.py has no flag for
  rotary positions, gated MLPs, grouped key-value heads or experts.
"""

from __future__ import annotations

from planner.backends.backend import Space
from planner.backends.rules.columns import Columns
from planner.backends.rules.rule import RuleTable

SPACE_2021 = Space(
    columns=Columns(
        schedules=("1f1b", "interleaved"),
        sequence_parallel=(False,),
        expert_parallel=False,
        hybrid_sharding=False,
        group_factors=(1,),
        recompute=("none", "full"),
        cp_kinds=(),
        zero_stages=(0,),
        zero_stages_with_pipeline=(0,),
        axis_orders=(0,),
        expert_tensor_parallel=False,
        optimizer_offload=False,
        activation_offload=False,
        overlap_ep=(False,),
        overlap_tp=False,
        overlap_data=((False, False), (True, False)),
        overlap_grad_with_pipeline=False,
        uniform_recompute=True,
        even_layers=True,
        whole_recompute=True,
    ),
    rules=RuleTable("megatron", (), ()),
)
