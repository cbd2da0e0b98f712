"""Traced models against their tables: families whose config both can read.

    python -m benchmarks.traced_models [TYPE ...]

For each: parameters of the trace less those of the table; FLOPs, kept elements of a layer and step time of the trace
over those of the table.  Step time: eight H100, ZeRO-3, one sequence of 4,096 tokens a device, no recompute, under the
physics of a tuned back-end.  All masked scores are counted in FLOPs, for a class that multiplies them itself does.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

from benchmarks.model_types import in_a_process

_WIDTHS: dict[str, Any] = {
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 8192,
    "pad_token_id": 0,
}
_HEADS = {**_WIDTHS, "head_dim": 128}
_EXPERTS = {**_HEADS, "num_experts": 16, "num_experts_per_tok": 4, "moe_intermediate_size": 1024}
_GPT = {"n_embd": 2048, "n_layer": 4, "n_head": 16, "n_positions": 8192, "vocab_size": 32000}
_LATENT = {
    **_WIDTHS,
    **{"num_key_value_heads": 16, "q_lora_rank": 512, "kv_lora_rank": 256, "qk_rope_head_dim": 64},
    **{"qk_nope_head_dim": 128, "v_head_dim": 128, "n_routed_experts": 16, "num_experts_per_tok": 4},
    **{"n_group": 1, "topk_group": 1, "moe_intermediate_size": 1024, "first_k_dense_replace": 1},
    "num_nextn_predict_layers": 0,
}
CONFIGS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("llama", "qwen2", "olmo2", "phi3", "granite", "cohere", "gpt_neox"), _WIDTHS),
    **dict.fromkeys(("qwen3", "glm4"), _HEADS),
    **{name: {**_HEADS, "sliding_window": 1024} for name in ("gemma2", "gemma3_text")},
    "gpt2": _GPT,
    "bloom": {"hidden_size": 2048, "n_layer": 4, "n_head": 16, "vocab_size": 32000},
    "falcon": {"hidden_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 16, "vocab_size": 32000},
    "mixtral": {**_WIDTHS, "num_local_experts": 8, "num_experts_per_tok": 2},
    "qwen3_moe": {**_EXPERTS, "decoder_sparse_step": 1, "mlp_only_layers": []},
    "deepseek_v3": _LATENT,
    "lfm2": {**_WIDTHS, "layer_types": ["conv", "conv", "full_attention", "conv"]},
    "mamba2": {
        **{"hidden_size": 2048, "num_hidden_layers": 4, "num_heads": 64, "head_dim": 64, "state_size": 128},
        **{"n_groups": 1, "vocab_size": 32000},
    },
}


def compared(kind: str) -> dict[str, Any]:
    """The comparison of one family, or why there is none."""
    from planner.model.flops import forward_flops_per_token
    from planner.model.hf_config import model_from_hf_config
    from planner.model.operators import layer_operators
    from planner.model.parameters import total_parameters
    from planner.model.spec import ModelSpec
    from planner.model.traced.model import model_of_parts
    from planner.model.traced.worker import Untraceable, traced

    warnings.simplefilter("ignore")
    config = {"model_type": kind, **CONFIGS[kind]}
    table = model_from_hf_config(config, kind, "config.json")
    try:
        trace = model_of_parts(json.loads(json.dumps(traced(config))), config, kind, "config.json")
    except Untraceable as error:
        return {"reason": str(error)}

    def flops(model: ModelSpec, length: int) -> float:
        return forward_flops_per_token(model, length, causal=False)

    def kept(model: ModelSpec) -> float:
        layers = ((run.count, layer_operators(model, run.kind)) for run in model.layer_runs)
        return sum(count * sum(op.saved_width + op.kept_scores * 4096 for op in ops) for count, ops in layers)

    return {
        "attention": trace.traced.attention if trace.traced else "",
        "parameters_off": total_parameters(trace) - total_parameters(table),
        "flops": round(flops(trace, 512) / flops(table, 512), 4),
        "flops_4096": round(flops(trace, 4096) / flops(table, 4096), 4),
        "kept": round(kept(trace) / kept(table), 3),
        "step": round(step_s(trace) / step_s(table), 3),
    }


def step_s(model: Any) -> float:
    """Predicted seconds of a step."""
    from planner.question.problem import Constraints, Problem, Workload
    from planner.search.estimate import estimate
    from planner.strategy.strategy import Strategy
    from profiles.catalogue.cluster_files import load_cluster

    problem = Problem(
        model=model,
        cluster=load_cluster("dgx-h100", 8),
        workload=Workload(global_batch_size=8, sequence_length=4096),
        constraints=Constraints(backends=("unrestricted",)),
    )
    return estimate(problem, Strategy(dp_shard=8, zero_stage=3)).step_time_s


def main() -> None:
    """Print one line a family."""
    import torch
    import transformers.modeling_utils

    assert torch.__version__
    assert transformers.__version__  # imported once, before processes are forked
    for kind in sys.argv[1:] or CONFIGS:
        print(json.dumps({"model_type": kind, **in_a_process(compared, kind, limit_s=900.0)}), flush=True)


if __name__ == "__main__":
    main()
