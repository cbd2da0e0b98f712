"""What each argument of Megatron-LM 0.19.2 is to a plan: used, without influence, or not modelled.

Every option of the pinned release's parser (``megatron/training/arguments.py``, 808 arguments in 844 spellings) is in
exactly one of the three, without its dashes and with ``-`` for ``_``; ``tests/contract/test_megatron_arguments.py``
compares them with the parser.  A new release means: sort its new arguments in here.
"""

from __future__ import annotations

RELEASE = "0.19.2"


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


USED = _names("""
account-for-embedding-in-pipeline-split account-for-loss-in-pipeline-split add-qkv-bias bf16 checkpoint-activations
context-parallel-size cp-comm-type data-parallel-sharding-strategy decoder-first-pipeline-num-layers
decoder-last-pipeline-num-layers disable-bias-linear disable-pad-vocab-size encoder-seq-length exp-avg-dtype
exp-avg-sq-dtype expert-model-parallel-size expert-tensor-parallel-size ffn-hidden-size
fine-grained-activation-offloading fp16 fp4-format fp4-recipe fp8-format fp8-param-gather fp8-recipe global-batch-size
grad-reduce-in-bf16 group-query-attention hidden-size kv-channels kv-lora-rank main-params-dtype
make-vocab-size-divisible-by max-position-embeddings merge-file micro-batch-size
microbatch-group-size-per-virtual-pipeline-stage moe-enable-deepep moe-ffn-hidden-size moe-flex-dispatcher-backend
moe-layer-freq moe-layer-recompute moe-router-group-topk moe-router-num-groups moe-router-score-function
moe-router-topk moe-shared-expert-gate moe-shared-expert-intermediate-size moe-token-dispatcher-type mtp-num-layers
multi-latent-attention no-pad-vocab-size no-position-embedding norm-epsilon normalization num-attention-heads
num-distributed-optimizer-instances num-experts num-layers num-layers-per-virtual-pipeline-stage num-query-groups
num-virtual-stages-per-pipeline-rank optimizer optimizer-cpu-offload overlap-grad-reduce
overlap-moe-expert-parallel-comm overlap-param-gather padded-vocab-size pipeline-model-parallel-layout
pipeline-model-parallel-size position-embedding-type q-lora-rank qk-head-dim qk-layernorm qk-pos-emb-head-dim
quick-geglu recompute-activations recompute-granularity recompute-method recompute-modules recompute-num-layers
rotary-base rotary-percent seq-length sequence-parallel softmax-type squared-relu swiglu tensor-model-parallel-size
tokenizer-model tokenizer-type tp-comm-overlap untie-embeddings-and-output-weights use-distributed-optimizer
use-megatron-fsdp use-precision-aware-optimizer use-rotary-position-embeddings use-torch-fsdp2 use-tp-pp-dp-mapping
v-head-dim vocab-file vocab-size window-attn-skip-freq window-size
""")
"""Read: they say the model, the work, the strategy or the number of devices."""

NO_INFLUENCE = _names("""
accumulate-allreduce-grads-in-fp32 activation-func-clamp-value adam-beta1 adam-beta2 adam-eps adlr-autoresume
adlr-autoresume-interval allow-ambiguous-pad-tokens app-tag-run-name app-tag-run-version apply-layernorm-1p
apply-query-key-layer-scaling apply-wd-to-qk-layernorm async-ckpt-cpu-priority async-ckpt-io-priority
async-ckpt-use-cpu-shm async-save async-strategy auto-detect-ckpt-format bert-embedder-type block-data-path
cache-mla-latents calc-ft-timeouts calculate-per-token-loss chat-template check-for-large-grads check-for-spiky-loss
check-weight-hash-across-dp-replicas-interval ckpt-assume-constant-structure ckpt-convert-format ckpt-convert-save
ckpt-convert-update-legacy-dist-opt-format ckpt-format ckpt-fully-parallel-load
ckpt-fully-parallel-load-exchange-algo ckpt-fully-parallel-load-process-group ckpt-fully-parallel-save
ckpt-fully-parallel-save-process-group ckpt-step classes-fraction clip-grad config-logger-dir
cross-entropy-fusion-impl cross-entropy-loss-fusion cuda-graph-warmup-steps data-args-path data-cache-path
data-parallel-random-init data-path data-per-class-fraction dataloader-defer-npy-index-mmap
dataloader-fast-cache-load dataloader-type ddp-average-in-collective decode-only-cuda-graphs decoupled-lr
decoupled-min-lr dino-bottleneck-size dino-freeze-last-layer dino-head-hidden-size dino-local-crops-number
dino-local-img-size dino-norm-last-layer dino-teacher-temp dino-warmup-teacher-temp dino-warmup-teacher-temp-epochs
disable-ckpt-load-validate-sharding-integrity disable-clone-scatter-output-in-embedding
disable-dsa-indexer-rotate-activation disable-dsa-indexer-scoring-relu disable-flight-recorder-dump-on-timeout
disable-flight-recorder-extra-dump-on-exec disable-flight-recorder-include-only-active disable-gloo-process-groups
disable-log-loss-scale-to-tensorboard disable-manual-gc-eval disable-msc disable-straggler-on-startup
disable-stream-ckpt-dequant disable-strict-fsdp-dtensor-load
disable-tokenizer-sentencepiece-ignore-extra-whitespaces disable-use-tokenizer-model-from-checkpoint-args
dist-ckpt-format dist-ckpt-optim-fully-reshardable dist-ckpt-save-pre-mcore-014 dist-ckpt-strictness
dist-ckpt-workers distrib-optim-fully-reshardable-mem-efficient distributed-backend distributed-timeout-minutes
distributed-timeout-seconds-after-init dsa-indexer-k-norm-epsilon dsa-indexer-k-norm-fp32 dsa-indexer-loss-coeff
dsa-indexer-rope-interleaved dump-param-to-param-group-map embedding-init-method-std embedding-path
enable-chunked-prefill enable-experimental enable-ft-package enable-msc end-weight-decay eod-mask-loss
error-injection-rate error-injection-type eval-global-batch-size eval-interval eval-iters eval-micro-batch-size
evidence-data-path exit-duration-in-mins exit-interval exit-on-missing-checkpoint exit-signal exit-signal-handler
exit-signal-handler-for-dataloader exit-signal-handler-for-training fake-process-group
fault-injector-delay-start-iteration fault-injector-fault-delay fault-injector-fault-probabilities
fault-injector-fault-types fault-injector-mtti-seconds fault-injector-num-ranks fault-injector-offset-seconds
fault-injector-ranks fault-injector-seed fim-data fim-eod-token fim-fragment-rate fim-middle-token fim-no-prefix
fim-pad-token fim-prefix-token fim-rate fim-split-sample fim-spm-rate fim-suffix-token finetune flash-decode
flight-recorder-dump-path flight-recorder-include-stack-trace flight-recorder-trace-buffer-size
fp8-amax-compute-algo fp8-amax-history-len fp8-interval fp8-margin ft-num-warmup-iters full-validation
glu-linear-offset gpu-sniff-test-interval grpo-clamp-eps-lower grpo-clamp-eps-upper grpo-entropy-term-weight
grpo-filter-groups-with-same-reward grpo-group-size grpo-iterations grpo-kl-beta grpo-prompts-per-step head-lr-mult
help hysteresis indexer-batch-size indexer-log-interval inference-batch-times-seqlen-threshold
inference-coordinator-port inference-cuda-graph-all-prefills inference-cuda-graph-max-tokens
inference-cuda-graph-scope inference-disable-ep-consensus inference-disable-triton-nvls-kernels
inference-dynamic-batching inference-dynamic-batching-async-sched-mode inference-dynamic-batching-block-size
inference-dynamic-batching-buffer-size-gb inference-dynamic-batching-cuda-graph-mixed-prefill-count
inference-dynamic-batching-cuda-graph-sizing-distribution inference-dynamic-batching-logprobs-mode
inference-dynamic-batching-mamba-memory-ratio inference-dynamic-batching-max-requests
inference-dynamic-batching-max-tokens inference-dynamic-batching-num-cuda-graphs
inference-dynamic-batching-paused-buffer-size-gb inference-dynamic-batching-prefix-caching
inference-dynamic-batching-prefix-caching-coordinator-policy
inference-dynamic-batching-prefix-caching-eviction-policy inference-dynamic-batching-prefix-caching-mamba-gb
inference-dynamic-batching-prefix-caching-routing-alpha inference-dynamic-batching-sampling-backend
inference-dynamic-batching-track-generated-token-events inference-dynamic-batching-track-paused-request-events
inference-dynamic-batching-unified-memory-level inference-fuse-tp-communication inference-grouped-gemm-backend
inference-logging-step-interval inference-max-requests inference-max-seq-length
inference-moe-disable-fused-quant-kernels inference-moe-token-dispatcher-type inference-rng-tracker inference-shards
inference-text-gen-server-logging inference-use-synchronous-zmq-collectives inference-wandb-logging init-method-std
init-method-xavier-uniform init-model-with-meta-device initial-loss-scale inprocess-active-world-size
inprocess-barrier-timeout inprocess-completion-timeout inprocess-empty-cuda-cache inprocess-granularity
inprocess-hard-timeout inprocess-heartbeat-interval inprocess-heartbeat-timeout inprocess-last-call-wait
inprocess-max-iterations inprocess-monitor-process-interval inprocess-monitor-thread-interval
inprocess-progress-watchdog-interval inprocess-restart inprocess-soft-timeout inprocess-termination-grace-time
iter-per-epoch iterations-to-skip langrl-env-config lazy-mpu-init lion-beta1 lion-beta2 load
load-main-params-from-ckpt local-rank log-device-memory-used log-energy log-interval log-max-attention-logit
log-memory-interval log-memory-to-tensorboard log-num-zeros-in-grad log-params-norm log-progress log-straggler
log-throughput log-timers-to-tensorboard log-validation-ppl-to-tensorboard log-world-size-to-tensorboard
logging-level logits-load-decode-threads logits-load-ignore-errors logits-load-kd-loss-alpha
logits-load-msc-prefetch-depth logits-load-prefetch-factor logits-save-dtype logits-save-top-k logits-save-top-p
logits-save-top-p-min-k loss-scale loss-scale-window lr lr-decay-iters lr-decay-samples lr-decay-style
lr-warmup-fraction lr-warmup-init lr-warmup-iters lr-warmup-samples lr-wsd-decay-iters lr-wsd-decay-samples
lr-wsd-decay-style mamba-inference-conv-states-dtype mamba-inference-ssm-states-dtype manual-gc manual-gc-interval
mask-factor mask-prob mask-type max-tokens-to-oom memory-snapshot-path mid-level-dataset-surplus min-loss-scale
min-lr mlp-chunks-for-prefill mock-data moe-aux-loss-coeff moe-grouped-gemm moe-input-jitter-eps
moe-mlp-glu-interleave-size moe-pad-experts-for-cuda-graph-inference moe-per-layer-logging moe-permute-fusion
moe-router-bias-update-rate moe-router-enable-expert-bias moe-router-pre-softmax moe-router-quantile-balancing-ema
moe-router-topk-scaling-factor moe-routing-trace-capture-hidden-states moe-routing-trace-capture-logits
moe-routing-trace-dump-weights moe-routing-trace-max-training-iters moe-routing-trace-path
moe-shared-expert-glu-interleave-size moe-token-drop-policy moe-z-loss-coeff mrope-section mscale mscale-all-dim
mtp-loss-scaling-factor multiple-validation-sets muon-coefficient-type muon-extra-scale-factor muon-momentum
muon-nesterov muon-scale-mode mup-attn-scale-power mup-base-head-dim mup-base-hidden-size mup-embedding-mult
mup-output-mult mup-width-mult nccl-all-reduce-for-prefill no-barrier-with-level-1-timing
no-check-for-nan-in-loss-and-grad no-ckpt-fully-parallel-save no-ckpt-load-validate-sharding-integrity
no-clone-scatter-output-in-embedding no-create-attention-mask-in-dataloader no-data-sharding
no-dsa-indexer-rotate-activation no-dsa-indexer-scoring-relu no-flight-recorder-dump-on-timeout
no-flight-recorder-extra-dump-on-exec no-flight-recorder-include-only-active no-inference-disable-ep-consensus
no-inference-dynamic-batching-prefix-caching no-inference-text-gen-server-logging
no-inference-use-synchronous-zmq-collectives no-inference-wandb-logging no-initialization no-load-optim no-load-rng
no-log-loss-scale-to-tensorboard no-manual-gc-eval no-mmap-bin-files no-one-logger
no-rl-inference-logprobs-is-correction no-rl-offload-inference-model-weights-when-idle no-rl-partial-rollouts
no-rl-persist-cuda-graphs no-rl-skip-bos-token no-rl-training-cuda-graphs no-rl-use-sequence-packing
no-rl-verify-model-weights-swap no-rope-freq no-save-optim no-save-rng no-stream-ckpt-dequant
no-strict-fsdp-dtensor-load no-tokenizer-sentencepiece-ignore-extra-whitespaces
no-use-tokenizer-model-from-checkpoint-args no-weight-decay-cond-type no-yarn-correction-range-round-to-int
non-persistent-ckpt-type non-persistent-global-ckpt-dir non-persistent-local-ckpt-algo non-persistent-local-ckpt-dir
non-persistent-save-interval null-tokenizer-eod-id null-tokenizer-pad-id num-classes num-dataset-builder-threads
num-speculative-tokens num-workers nvtx-ranges object-storage-cache-path one-logger-async one-logger-project
one-logger-run-name onnx-safe openai-gelu output-bert-embeddings overlap-cpu-optimizer-d2h-h2d
override-ckpt-iteration override-opt-param-scheduler per-dataset-sequences-path per-split-data-args-path
persistent-save-interval phase-transition-iterations pretrained-checkpoint profile profile-ranks profile-step-end
profile-step-start pytorch-profiler-collect-callstack pytorch-profiler-collect-chakra
pytorch-profiler-collect-shapes qk-clip-alpha qk-clip-threshold query-in-block-prob record-memory-history
record-shapes refit-method replication replication-factor replication-jump rerun-mode reset-position-ids
result-rejected-tracker-filename retriever-report-topk-accuracies retriever-score-scaling rl-consumption-granularity
rl-default-temperature rl-default-top-k rl-default-top-p rl-generation-lag rl-importance-sampling-truncation-coef
rl-inference-expert-model-parallel-size rl-inference-expert-tensor-model-parallel-size
rl-inference-logprobs-is-correction rl-inference-model-unified-memory-level rl-inference-parsers
rl-inference-pipeline-model-parallel-size rl-inference-tensor-model-parallel-size rl-kv-cache-management-mode
rl-offload-inference-model-weights-when-idle rl-partial-rollouts rl-persist-cuda-graphs rl-profile rl-profile-dir
rl-prompts-per-eval rl-sequence-packing-algo rl-sequence-packing-max-sequences-per-bin rl-skip-bos-token
rl-submission-granularity rl-verify-model-weights-swap rope-scaling-factor rope-type rotary-interleaved
rotary-scaling-factor rotary-seq-len-interpolation-factor run-workload-inspector-server sample-rate save
save-activations-interval save-dgrads-interval save-interval save-params-interval save-retain-interval
save-tokens-per-expert-interval save-wgrads-interval seed sft-tokenizer-prompt-format sgd-momentum short-seq-prob
split start-eval-at-iter start-weight-decay straggler-ctrlr-port straggler-minmax-count te-rng-tracker
tensorboard-dir tensorboard-log-interval tensorboard-queue-size test-data-path test-mode tiktoken-num-special-tokens
tiktoken-pattern timing-log-level timing-log-option titles-data-path tokenizer-hf-no-include-special-tokens
tokenizer-hf-no-use-fast tokenizer-metadata tokenizer-sentencepiece-legacy tp-comm-bootstrap-backend train-data-path
train-iters train-samples trust-remote-code use-checkpoint-opt-param-scheduler use-cpu-initialization use-dist-ckpt
use-flash-attn use-legacy-static-engine use-mcore-models use-mup use-one-sent-docs use-persistent-ckpt-worker
use-pytorch-profiler use-rope-scaling use-same-sampling-seed-across-dp-ranks valid-data-path validation-set-names
verify-integrity wandb-entity wandb-exp-name wandb-project wandb-save-dir warmup weight-decay
weight-decay-incr-style yarn-beta-fast yarn-beta-slow yarn-correction-range-round-to-int
yarn-original-max-position-embeddings
""")
"""They change neither the time nor the memory of a training step that the planner predicts: data, learning rate,
logs, checkpoints, evaluation, inference, recovery; and what the prediction assumes anyway, such as fusions."""

NOT_MODELLED = _names("""
activation-offload-fraction apply-residual-connection-post-layernorm attention-backend attention-dropout
attention-output-gate attention-softmax-in-fp32 batch-invariant-mode batch-size bert-load bert-no-binary-head
biencoder-projection-dim biencoder-shared-query-context-model cpu-offloading-num-layers
cpu-offloading-retain-pinned-cpu-buffers create-all-gather-group cuda-graph-impl cuda-graph-modules cuda-graph-scope
dataloader-inter-document-masking ddp-bucket-size ddp-num-buckets ddp-pad-buckets-for-high-nccl-busbw
ddp-param-name-patterns-for-fp32-local-accumulation ddp-reduce-scatter-with-fp32-accumulation decoder-num-layers
decoder-seq-length decrease-batch-size-if-needed defer-embedding-wgrad-compute delay-offload-until-cuda-graph
delay-wgrad-compute delta-offload-bytes-across-pp-ranks deterministic-mode disable-align-grad-reduce
disable-bf16-reduced-precision-matmul disable-fp8-wgrad disable-jit-fuser disable-mamba-mem-eff-path
disable-symmetric-registration disable-tp-comm-bulk-dgrad disable-tp-comm-bulk-wgrad disable-tp-comm-overlap-ag
disable-tp-comm-overlap-rs disable-tp-comm-split-ag disable-tp-comm-split-rs distribute-saved-activations
dsa-indexer-head-dim dsa-indexer-n-heads dsa-indexer-skip-topk-offset dsa-indexer-topk dsa-indexer-topk-freq
dsa-indexer-use-sparse-loss dsa-kernel-backend empty-unused-memory-level enable-cuda-graph
enable-full-sharding-in-hsdp encoder-num-layers ep-overlap-early-attn-memory-release experimental-attention-variant
expert-tensor-parallel-num-weight-shards external-cuda-graph fine-grained-offloading-max-inflight-offloads
first-last-layers-bf16 flash-attention-version fp16-lm-cross-entropy fp32-residual-connection
fp4-param-gather fp4-quantizer-factory fp8-output-proj fp8-quantizer-factory
freeze-all-layers fsdp-db-use-persist-buf-on-alloc-fail fsdp-double-buffer fsdp-manual-registration
fused-residual-rmsnorm heterogeneous-layers-config-encoded-json heterogeneous-layers-config-path hidden-dropout
hierarchical-context-parallel-sizes high-priority-a2a-comm-stream high-priority-stream-groups
hybrid-context-parallel hybrid-layer-pattern hybrid-override-pattern ict-head-size ict-load img-h img-w
is-hybrid-model keep-fp8-transpose-cache kitchen-attention-backend linear-attention-freq linear-conv-kernel-dim
linear-key-head-dim linear-num-key-heads linear-num-value-heads linear-value-head-dim logits-load-dir
logits-save-dir main-grads-dtype mamba-head-dim mamba-num-groups mamba-num-heads mamba-state-dim
mamba-training-ssm-states-dtype max-seqlen-per-dp-cp-rank megatron-fsdp-enable-fine-grained-param-gather
megatron-fsdp-grad-comm-dtype megatron-fsdp-main-grads-dtype megatron-fsdp-main-params-dtype
megatron-fsdp-max-pool-double-buffer min-offloaded-tensor-size mla-down-proj-fusion mlp-chunks-for-training
model-parallel-size moe-apply-probs-on-input moe-deepep-num-sms moe-enable-routing-replay
moe-expert-capacity-factor moe-expert-rank-capacity-factor moe-flex-dispatcher-num-sms
moe-hybridep-num-blocks-permute moe-hybridep-num-blocks-unpermute moe-hybridep-num-sms
moe-hybridep-num-sms-preprocessing moe-hybridep-pad-uneven-dispatch-inputs moe-latent-size moe-ncclep-static-shape
moe-ncclep-zero-copy moe-pad-expert-input-to-capacity moe-paged-stash moe-paged-stash-buffer-size-factor-cpu
moe-paged-stash-buffer-size-factor-cuda moe-paged-stash-page-size moe-permute-fusion-into-hybridep moe-router-dtype
moe-router-force-biased moe-router-force-load-balancing moe-router-fusion moe-router-load-balancing-type
moe-router-padding-for-fp8 moe-router-padding-for-quantization moe-shared-expert-overlap moe-single-grouped-bias
moe-single-grouped-weight moe-upcycling-granularity moe-use-upcycling mtp-detach-heads
mtp-hybrid-override-pattern mtp-standalone mtp-use-repeated-layer muon-fp32-matmul-prec muon-no-split-qkv
muon-num-ns-steps muon-scalar-optimizer muon-tp-mode nccl-communicator-config-path no-align-grad-reduce
no-align-param-gather no-bias-dropout-fusion no-bias-gelu-fusion no-bias-swiglu-fusion no-fp8-wgrad
no-gradient-accumulation-fusion no-gradient-reduce-div-fusion no-masked-softmax-fusion no-overlap-p2p-communication
no-persist-layer-norm no-pin-cpu-grads no-pin-cpu-params no-rope-fusion no-tp-comm-bulk-dgrad no-tp-comm-bulk-wgrad
no-tp-comm-overlap-ag no-tp-comm-overlap-rs no-tp-comm-split-ag no-tp-comm-split-rs no-use-layer-wise-param-layout
num-channels num-layers-at-end-in-bf16 num-layers-at-start-in-bf16 offload-modules optimizer-cuda-graph
optimizer-offload-fraction outer-dp-sharding-strategy overlap-dispatch-backward-with-experts-wgrad
overlap-p2p-communication-warmup-flush overlap-param-gather-with-optimizer-step patch-dim perform-rl-step
pipeline-model-parallel-comm-backend qk-clip qk-l2-norm rampup-batch-size relative-attention-max-distance
relative-attention-num-buckets reset-attention-mask reuse-grad-buf-for-mxfp8-param-ag
rl-offload-optimizer-during-inference rl-training-cuda-graphs rl-use-sequence-packing sft sharp-enabled-group
skip-train spec step-batch-size-schedule suggested-communication-unit-size swin-backbone-type symmetric-ar-type
te-precision-config-file tensor-parallel-num-weight-shards tokenizer-special-tokens
torch-fsdp2-no-reshard-after-forward tp-comm-overlap-cfg tp-comm-overlap-rs-dgrad train-sync-interval
transformer-impl use-checkpoint-args use-fused-weighted-squared-relu use-grouped-gemm-for-dense-mlp
use-grouped-gemm-for-shared-expert use-kitchen-attention use-mp-args-from-checkpoint-args use-nccl-ub
use-ring-exchange-p2p use-sharp use-te-activation-func use-torch-optimizer-for-cpu-offload
use-transformer-engine-op-fuser vision-backbone-type vision-pretraining vision-pretraining-type vocab-extra-ids
wgrad-deferral-limit yaml-cfg
""")
"""They may change time, memory or the model, and the planner has no word for them: every answer tells them."""
