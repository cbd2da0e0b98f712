"""Arguments of Megatron-LM that change time or memory and that the planner has no word for.

They are told with every answer about a script, each as it is written.  Facts: megatron-core 0.19.2
training/arguments.py and core/transformer/transformer_config.py.
"""

from __future__ import annotations

from planner.model.megatron_flags import MegatronFlags

_WHOLE = (
    "overlap-param-gather-with-optimizer-step", "delay-wgrad-compute", "fp8-param-gather", "fp4-format", "cuda-graph-impl",
    "enable-cuda-graph", "external-cuda-graph", "use-precision-aware-optimizer", "cpu-offloading-num-layers",
    "cpu-offloading", "hierarchical-context-parallel-sizes", "hybrid-context-parallel", "distribute-saved-activations",
    "tensor-parallel-num-weight-shards", "expert-tensor-parallel-num-weight-shards", "use-nccl-ub", "fsdp-double-buffer",
    "outer-dp-sharding-strategy", "moe-expert-capacity-factor", "moe-pad-expert-input-to-capacity",
    "moe-shared-expert-overlap", "moe-flex-dispatcher-backend", "moe-enable-deepep", "hybrid-layer-pattern",
    "moe-use-legacy-grouped-gemm", "defer-embedding-wgrad-compute", "main-grads-dtype", "main-params-dtype",
    "exp-avg-dtype", "exp-avg-sq-dtype", "optimizer-offload-fraction", "rampup-batch-size", "step-batch-size-schedule",
    "xielu", "no-overlap-p2p-communication", "overlap-p2p-communication-warmup-flush",
)  # fmt: skip
_DEFAULTS = {
    "main-grads-dtype": "fp32",
    "main-params-dtype": "fp32",
    "exp-avg-dtype": "fp32",
    "exp-avg-sq-dtype": "fp32",
}
_MODULES = frozenset({"mla_up_proj", "shared_experts", "gdn_norm_out"})
_OPTIMIZERS = frozenset({"adam", "sgd", "muon"})


def unmodelled(flags: MegatronFlags) -> tuple[str, ...]:
    """The arguments as written, each with its values."""
    found = [
        " ".join((f"--{name}", *flags.words(name)))
        for name in _WHOLE
        if flags.has(name) and (name not in _DEFAULTS or flags.words(name) != [_DEFAULTS[name]])
    ]
    if set(flags.words("exp-avg-dtype") + flags.words("exp-avg-sq-dtype")) == {"bf16"}:
        found = [each for each in found if not each.startswith(("--exp-avg", "--use-precision-aware"))]
    found += [f"--recompute-modules {word}" for word in flags.words("recompute-modules") if word in _MODULES]
    kinds = set(flags.words("cp-comm-type")) - {"p2p", "a2a"}
    found += [f"--cp-comm-type {kind} (taken as a ring)" for kind in sorted(kinds)]
    optimizer = next(iter(flags.words("optimizer")), "adam")
    if optimizer not in _OPTIMIZERS:
        found.append(f"--optimizer {optimizer} (taken as adam)")
    return tuple(found)
