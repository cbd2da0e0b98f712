"""What each argument that MindSpeed adds to Megatron-LM is to a plan: used, without influence, or not modelled.

Arguments of Megatron-LM are sorted in ``megatron_arguments``; here are those of MindSpeed (028de58c, July 2026) and of
MindSpeed-LLM (c77308a1, August 2026), and those of Megatron-LM core_v0.12.1, which both patch, that 0.19.2 lacks.
``tests/contract/test_mindspeed_arguments.py`` compares them with the sources' names.
"""

from __future__ import annotations


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


USED = _names("""
context-parallel-algo first-k-dense-replace geglu gelu-tanh moe-fb-overlap moe-intermediate-size moe-tp-extend-ep
multi-head-latent-attention n-group n-shared-experts noop-layers num-layer-list partial-rotary-factor qk-nope-head-dim
qk-rope-head-dim recompute-activation-function recompute-norm schedules-method shared-expert-gate swap-attention
swap-optimizer topk-group use-ascend-mc2 use-mc2
""")
"""Read (``planner.model.mindspeed_words``)."""

OTHER_MODELS = _names("""
compress-ratios dist-train enable-dsa-indexer enable-mhc encoder-pipeline-model-parallel-size
encoder-tensor-model-parallel-size full-attention-interval layerwise-disaggregated-training lora-r lora-target-modules
retro-add-retriever tp-2d use-nd-matmul
""")
"""They train another model, a part of it, or on another grid than the other arguments describe: refused by name."""

NO_INFLUENCE = _names("""
add-eos-token add-rmsnorm-offset additional-config ai-framework aiqos aiqos-enable-roce aiqos-mode aiqos-schedule
alternative-prompt append-eod async-log-allreduce auto-settings auto-settings-log-level auto-settings-ranks
auto-settings-type auto-settings-work-dir beta-fast beta-slow broadcast cache-dir chain-of-thought cut-max-seqlen
dataset-additional-keys dataset-dir dataset-impl datasets dim-model-base disable-gloo-group
distributed-optimizer-no-replica dpo-label-smoothing dpo-loss-type drop-thinking dynamic-factor
embedding-multiplier-scale enable-elastic-training enable-hbmfault-repair enable-hf2mg-convert
enable-high-availability enable-mg2hf-convert enable-share-memory enable-thinking enable-worker-reboot eval-language
evaluation-batch-size fill-neg-inf full-shuffle-instruction-dataset greedy handler-name hccl-op-mode hf-cfg-dir
hf-chat-template hf-datasets-params hf-save-dir high-freq-factor history-turns
inference-dynamic-batching-buffer-guaranteed-fraction inference-dynamic-batching-buffer-overflow-factor
inference-dynamic-batching-max-requests-override inference-dynamic-batching-max-tokens-override instruction-template
interleave-probs jit-compile json-keys keep-newlines load-checkpoint-loosely long-factor long-mscale
longrope-freqs-type low-freq-factor map-keys max-eval-samples max-length max-new-tokens max-samples merge-group-keys
mg-save-dir mix-strategy model-type-hf moe-comm-aux-loss-coeff moe-device-level-aux-loss-coeff
moe-revert-type-after-topk n-subs no-chat-template no-shared-storage no-shuffle norm-topk-prob npu-datadump
only-convert-last-checkpoint op-cal-tflops origin-postprocess original-max-position-embeddings output-multiplier-scale
output-prefix overwrite-cache padded-samples print-expert-load prof-file profile-data-simplification
profile-export-type profile-level profile-record-shapes profile-save-path profile-with-cpu profile-with-memory
profile-with-stack prompt-type prompt-type-path query-pre-attn-scalar reasoning-effort retriever-seq-length
retro-attention-gate retro-cyclic-train-iters retro-encoder-attention-dropout retro-encoder-hidden-dropout
retro-encoder-layers retro-no-verify-neighbor-count retro-num-neighbors retro-num-retrieved-chunks retro-project-dir
reward-tokens rope-factor rope-scaling-beta-fast rope-scaling-beta-slow rope-scaling-mscale
rope-scaling-mscale-all-dim rope-scaling-original-max-position-embeddings rope-scaling-type rope-theta
routed-scaling-factor s3-cache-path save-layer-by-layer save-lora-to-hf scale-depth scale-emb script-data-dir seq-aux
short-factor short-mscale split-sentences streaming swap-optimizer-times task task-data-path temperature
tiktoken-special-tokens tokenizer-not-use-fast tokenizer-padding-side top-k top-p ttp-dump-dir
ttp-dump-timeout-seconds ttp-enabled ttp-heartbeat-interval-ms ttp-heartbeat-timeout-ms ttp-max-dump-ckpt-to-keep
ttp-max-missed-count ttp-save-optimizer ttp-save-rng ttp-server-ip ttp-server-port ttp-wait-dump-file-timeout
use-fused-moe-token-permute-and-unpermute use-fused-rmsnorm use-fused-rotary-pos-emb use-fused-swiglu use-glm-rope
use-kv-cache use-wandb workers yarn-scaling-factor
""")
"""Data, checkpoints, logs, profiles, recovery, rotary frequencies, and fused kernels that the prediction assumes."""

NOT_MODELLED = _names("""
adaptive-cp-dynamic-attn-mask adaptive-cp-manually-set-mask-list adaptive-cp-only-reschedule
adaptive-cp-without-coarse adaptive-memory-optimization adaptive-recompute-device-size adaptive-recompute-device-swap
adaptive-recompute-profiling-step add-dense-bias add-output-layer-bias alibi-diagonal-opposite alibi-fusion-attn-type
ampipe-degree ampipe-tp-sp-comm-overlap apply-rope-no-in-complex attention-mask-on-cpu attention-mask-type
attn-logit-softcapping automated-pipeline automated-pipeline-perf balanced-moe-experts balanced-moe-hot-expert-num
cla-share-factor coc-fused-kernel coc-mode coc-parallel-num compress-activation compress-dense compress-optimizer
compress-rope-theta context-parallel-cache-interval context-parallel-kv-cache-policy cp-attention-mask-type
cp-window-size dpo-beta dualpipev-dw-detach ema-decay enable-backward-overlap-ag-with-matmul enable-expert-placement
enable-fine-grained-expert-placement enable-mla-absorb enable-mla-scale-kv-lora enable-mla-scale-q-lora
enable-overlap-ag-with-matmul enable-overlap-matmul-with-rs enable-recompute-layers-per-pp-rank
enable-token-rearrange-opt enable-zero3 expert-interval expert-placement-freq fc-type
fine-grained-expert-placement-thre fix-router fix-sub-seq-length fp8-reuse-quantized-weight fsdp2-config-path
gemm-gradient-accumulation-fusion hc-eps hc-mult hc-sinkhorn-iters hccl-ep-group-buffer-adaptive-factor
hccl-group-buffer hccl-group-buffer-adaptive hccl-slice-size hybrid-attention-ratio hybrid-mlp-ratio index-head-dim
index-n-heads index-share-for-mtp-iteration index-skip-topk-offset index-topk index-topk-freq index-topk-pattern
indexer-loss-coeff indexer-qk-quant-scheme init-norm-weight-in-fp32 input-embeds-norm input-jitter
input-layernorm-in-fp32 interleave-sliding-window is-instruction-dataset is-pairwise-dataset
keep-fp8-transpose-cache-when-using-custom-fsdp kl-loss-reduction kl-loss-weight kl-temperature kv-compress
kv-head-repeat-before-uly-alltoall layerzero layerzero-config lora-alpha lora-ckpt-filter lora-fusion lora-load
lora-modules-to-save lora-register-forward-hook loss-chunk-size loss-compute-mode lu-lora-final-layer-index lu-lora-lr
lu-lora-lr-ratio mamba-chunk-size mamba-d-conv mamba-d-ssm mamba-expand max-batch-size mbs-idx megatron-cp-in-bnsd
mla-fa-divide-qk mla-fa-without-pad mla-mm-split mla-swap-core-attn-out mla-up-proj-tp-overlap mla-zero-memory
moe-adaptive-recompute-activation moe-adaptive-recompute-activation-scale moe-allgather-overlap-comm moe-alltoall-mc2
moe-alltoall-overlap-comm moe-bmm-mc2 moe-dynamic-padding moe-extended-tp moe-model-type moe-no-drop
moe-permutation-async-comm moe-train-capacity-factor moe-unperm2-mem-optim-swap moe-use-legacy-grouped-gemm
moe-use-sinkhorn moe-zero-memory moe-zero-memory-num-layers mtp-mem-efficient-logits mtp-spec n-hash-layers
nd1-dim1-size nd2-dim1-size neat-pack next-tockens no-async-tensor-model-parallel-allreduce no-cut-token
no-enable-linear-qkv no-pad-to-seq-lengths no-post-layer-norm no-qad-enable no-scatter-gather-tensors-in-pipeline
no-use-gmm-fp8 no-use-rts no-use-sparse-c8-indexer noisy-gate-policy npu-deterministic num-zero-experts o-groups
o-lora-rank o2-gradient o2-optimizer optimization-level optimize-send-recv-comm optimize-vpp-send-recv-comm
optimized-mbs-list optimized-mbs-mode optimizer-selection original-seq-len output-layer-slice-num
output-logit-softcapping pack pad-to-multiple-of padded-base-length param-and-grad-buffer-pad pipe-experts-multi-data
pipe-experts-multi-stream pipeline-model-parallel-split-rank pipeline-num-transformer-layers post-norm
pp-schedule-list pre-tockens pref-ftx qad-enable qad-teacher-load qat-quant-block-size qat-scheme quant-grads
quant-states recompute-activation-function-num-layers recompute-in-advance recompute-in-bubble recompute-mla-up-proj
recompute-module-list recompute-norm-num-layers recompute-type ref-model refer-model-iter reset-bucket-group-order
reuse-fp32-param rmsnorm-weight-in-fp32 router-gating-in-fp32 save-memory-ratio scale-fmt shape-order share-kvstates
shared-expert-gate-output-dimension skip-bias-add sliding-window sliding-window-size smart-swap sparse-mode
square-alibi-mask stage swap-layer-input swap-modules swiglu-limit target-nnodes te-comparison-with-bf16
te-comparison-with-cpu te-gmm-mode topk-softmax-in-fp32 tp-x tp-y trans-hot-expert-group-num ulysses-degree-in-cp
unaligned-linear use-ascend-coc use-cp-send-recv-overlap use-deter-comp use-dsa-absorb use-ema
use-fused-lightning-indexer use-fused-lightning-indexer-kl-loss use-fused-lightning-indexer-loss use-fused-mhc
use-fused-ring-attention-update use-fused-sparse-flash-attention use-fusion-attn-v2 use-global-aux-loss
use-legacy-models use-multiparameter-pipeline-model-parallel use-nanopipe use-nanopipe-swap use-pipe-experts
use-sparse-flash-attn use-triton-gdn use-triton-mhc use-triton-swiglu-limit use-ulysses-allgather-kv
variable-seq-lengths virtual-optimizer
""")
"""They may change time, memory or the model, and the planner has no word for them: every answer tells them."""

ASSUMED_HERE = _names("no-masked-softmax-fusion no-rope-fusion")
"""Arguments of Megatron-LM that are not modelled there and that Ascend's flash attention and kernels replace."""
