"""Training steps of Megatron Core on one device without Transformer Engine: its local layers, DDP and optimizer.

Megatron's own model, fused bias and activation functions, gradient buffers and distributed optimizer run; attention is
the unfused one, because the fused ones are Transformer Engine's.  Host time, kernels and memory are what this shows.
"""

from __future__ import annotations

import os
from typing import Any

import torch

from benchmarks.device_run.hugging_face import release, truth_facts
from benchmarks.device_run.models import MODELS, ModelSize
from benchmarks.device_run.records import Recorder
from benchmarks.device_run.steps import measure_step

CASES: tuple[tuple[str, int, int], ...] = (
    ("llama-1.3b", 2, 2048),
    ("llama-1.3b", 1, 64),
    ("qwen3moe-1.3b", 2, 2048),
    ("qwen3moe-1.3b", 1, 64),
    ("llama-1.3b", 4, 1024),
    ("mixtral-1.1b", 2, 2048),
)
"""Model, micro-batch size, sequence length."""


def run(recorder: Recorder, device: torch.device) -> None:
    """Every case with a model of its own."""
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29612")
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")
    ready = recorder.case({"id": "megatron-core-start"}, _start)
    for model, micro_batch, sequence in CASES if ready is not None else ():
        facts = truth_facts(MODELS[model], micro_batch, sequence, False)
        facts |= {"id": f"megatron-core-{model}-b{micro_batch}-s{sequence}", "precision": "bf16"}
        facts |= {"zero_or_fsdp": "distributed-optimizer", "software": {"name": "Megatron Core, local layers"}}
        recorder.case(facts, lambda m=model, b=micro_batch, s=sequence: _steps(MODELS[m], b, s, device))  # type: ignore[misc]
        release(device)


def _start() -> dict[str, Any]:
    import megatron.core
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed

    torch.cuda.set_device(0)
    torch.distributed.init_process_group("nccl")
    parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
    model_parallel_cuda_manual_seed(1)
    return {"version": megatron.core.__version__}


def _steps(size: ModelSize, micro_batch: int, sequence: int, device: torch.device) -> dict[str, Any]:
    from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer

    config = _config(size)
    model = DistributedDataParallel(
        config,
        DistributedDataParallelConfig(grad_reduce_in_fp32=True, use_distributed_optimizer=True),
        _model(size, config, sequence).cuda(),
    )
    optimizer = get_megatron_optimizer(
        OptimizerConfig(optimizer="adam", lr=1e-5, bf16=True, use_distributed_optimizer=True, clip_grad=1.0),
        [model],
        use_gloo_process_groups=False,
    )
    tokens = torch.randint(0, size.vocab, (micro_batch, sequence), device=device)
    positions = torch.arange(sequence, device=device).expand(micro_batch, -1)
    mask = torch.triu(torch.ones(1, 1, sequence, sequence, dtype=torch.bool, device=device), 1)

    def step() -> None:
        model.zero_grad_buffer()
        optimizer.zero_grad()
        loss = model(tokens, positions, mask, labels=tokens).float().mean()
        loss.backward()
        finalize_model_grads([model])
        optimizer.step()

    return measure_step(step, device)


def _config(size: ModelSize) -> Any:
    from megatron.core.transformer.transformer_config import TransformerConfig

    experts: dict[str, Any] = {}
    if size.experts:
        experts = {
            "num_moe_experts": size.experts, "moe_router_topk": size.topk, "moe_ffn_hidden_size": size.ffn_hidden,
            "moe_token_dispatcher_type": "alltoall", "moe_router_load_balancing_type": "aux_loss",
            "moe_aux_loss_coeff": 1e-3,
        }  # fmt: skip
    return TransformerConfig(
        num_layers=size.layers, hidden_size=size.hidden, ffn_hidden_size=size.ffn_hidden,
        num_attention_heads=size.heads, num_query_groups=size.kv_heads, kv_channels=size.head_dim,
        gated_linear_unit=True, activation_func=torch.nn.functional.silu, normalization="RMSNorm",
        add_bias_linear=False, hidden_dropout=0.0, attention_dropout=0.0, bf16=True, params_dtype=torch.bfloat16,
        pipeline_dtype=torch.bfloat16, bias_activation_fusion=True, bias_dropout_fusion=True,
        masked_softmax_fusion=False, persist_layer_norm=False, gradient_accumulation_fusion=False,
        apply_rope_fusion=False, **experts,
    )  # fmt: skip


def _model(size: ModelSize, config: Any, sequence: int) -> Any:
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec

    spec = get_gpt_layer_local_spec(num_experts=size.experts or None, moe_grouped_gemm=False, normalization="RMSNorm")
    return GPTModel(
        config, spec, vocab_size=size.vocab, max_sequence_length=sequence, position_embedding_type="rope",
        share_embeddings_and_output_weights=False,
    ).bfloat16()  # fmt: skip
