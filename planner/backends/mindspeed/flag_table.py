"""The flags that each release knows: the allow-list that every emitted flag is checked against.

``core_v0.12.1`` is the tag of Megatron-LM that MindSpeed's branch ``core_r0.12.1`` patches.  A release here means:

- Megatron-LM at that tag (``megatron/training/arguments.py``; its dataclasses are those of megatron-core 0.12.1),
- MindSpeed, branch ``core_r0.12.1`` from 028de58c (July 2026) on: ``--pipeline-model-parallel-layout`` and
  ``--optimizer muon`` were back-ported then.  MindSpeed's own main branch patches Megatron 0.18 and drops features.

The lists hold what plans can touch, not everything that the parsers know.  A value is where the flag is registered.

What they were compared with: all of ``_MODEL`` and ``_RUN`` with NVIDIA's ``megatron/training/arguments.py`` at the tag
(NVIDIA/Megatron-LM a845aa7e); ``_FEATURES`` with MindSpeed's feature files: the layout at imhmhm/MindSpeed-LLM f97d07ec
(the stored copy of Ascend/MindSpeed at 1f5feb86 leaves the flag to a later Megatron), the others at Ascend/MindSpeed or
that repository.
The value ``ulysses_cp_algo`` of ``--context-parallel-algo`` was read in documentation only
(docs/en/features/ulysses-context-parallel.md at 7af9baed): no stored feature file registers it.

MindSpeed-LLM registers some of these flags again with another meaning (``--moe-layer-freq`` takes a number there,
latent attention has names of its own), so the files are for Megatron-LM + MindSpeed, not for MindSpeed-LLM's scripts.
"""

from __future__ import annotations

CORE_VERSION = "core_v0.12.1"

_MODEL = """
--num-layers --hidden-size --ffn-hidden-size --num-attention-heads --kv-channels --group-query-attention
--num-query-groups --qk-layernorm --multi-latent-attention --q-lora-rank --kv-lora-rank --qk-head-dim
--qk-pos-emb-head-dim --v-head-dim --normalization --norm-epsilon --swiglu --squared-relu --disable-bias-linear
--add-qkv-bias --position-embedding-type --max-position-embeddings --rotary-base --rotary-percent --no-rope-fusion
--untie-embeddings-and-output-weights --mtp-num-layers --make-vocab-size-divisible-by --attention-dropout
--hidden-dropout --num-experts --moe-router-topk --moe-ffn-hidden-size --moe-grouped-gemm --moe-permute-fusion
--moe-token-dispatcher-type --moe-router-dtype --moe-layer-freq --moe-shared-expert-intermediate-size
--moe-router-score-function --moe-router-enable-expert-bias --moe-router-pre-softmax --moe-router-num-groups
--moe-router-group-topk --moe-router-bias-update-rate --moe-router-topk-scaling-factor --moe-router-load-balancing-type
--moe-aux-loss-coeff --rotary-scaling-factor --mscale --mscale-all-dim --use-rope-scaling --rope-scaling-factor
"""
_RUN = """
--tensor-model-parallel-size --pipeline-model-parallel-size --context-parallel-size --expert-model-parallel-size
--expert-tensor-parallel-size --sequence-parallel --num-layers-per-virtual-pipeline-stage
--microbatch-group-size-per-virtual-pipeline-stage --use-tp-pp-dp-mapping --seq-length --micro-batch-size
--global-batch-size --bf16 --fp16 --grad-reduce-in-bf16 --optimizer --use-distributed-optimizer
--num-distributed-optimizer-instances --use-custom-fsdp --data-parallel-sharding-strategy
--no-gradient-accumulation-fusion --overlap-grad-reduce --overlap-param-gather --recompute-granularity
--recompute-method --recompute-num-layers --recompute-modules --transformer-impl --use-flash-attn
--no-masked-softmax-fusion --tokenizer-type --vocab-size --mock-data --train-iters --lr --eval-iters --log-interval
--adam-beta1 --adam-beta2 --adam-eps --weight-decay --clip-grad
"""
_FEATURES = {
    "--pipeline-model-parallel-layout": "pipeline_parallel/pipeline_model_parallel_layout_feature.py",
    "--noop-layers": "pipeline_parallel/noop_layers.py",
    "--schedules-method": "pipeline_parallel/dualpipev_feature.py",
    "--context-parallel-algo": "context_parallel/context_parallel_feature.py",
    "--use-ascend-mc2": "tensor_parallel/mc2.py",
    "--moe-fb-overlap": "moe/fb_overlap.py",
    "--recompute-norm": "recompute/norm_function.py",
    "--recompute-activation-function": "recompute/activation_function.py",
    "--swap-attention": "memory/swap_attention.py",
    "--swap-optimizer": "optimizer/swap_optimizer_feature.py",
    "--use-fused-rmsnorm": "megatron_basic/megatron_basic.py",
    "--use-fused-swiglu": "megatron_basic/megatron_basic.py",
    "--use-fused-rotary-pos-emb": "fusions/fused_rope.py",
}

MEGATRON_FLAGS: dict[str, dict[str, str]] = {
    CORE_VERSION: dict.fromkeys((_MODEL + _RUN).split(), "Megatron-LM core_v0.12.1 megatron/training/arguments.py")
}
MINDSPEED_FLAGS: dict[str, dict[str, str]] = {
    CORE_VERSION: {flag: f"MindSpeed core_r0.12.1 features_manager/{path}" for flag, path in _FEATURES.items()}
}


def known_flags(version: str) -> dict[str, str]:
    """Flag -> where it is registered, Megatron's and MindSpeed's together."""
    return {**MEGATRON_FLAGS[version], **MINDSPEED_FLAGS[version]}
