"""Training steps of DeepSpeed's ZeRO stages on one device, with a model of transformers.

``torch_adam``: torch's AdamW, because the fused one of DeepSpeed is compiled where it runs.
"""

from __future__ import annotations

import os
from typing import Any

import torch

from benchmarks.device_run.hugging_face import build_model, release, truth_facts
from benchmarks.device_run.models import MODELS
from benchmarks.device_run.records import Recorder
from benchmarks.device_run.steps import measure_step

CASES: tuple[tuple[str, int, int, int], ...] = (
    ("llama-1.3b", 1, 2, 2048),
    ("llama-1.3b", 3, 2, 2048),
    ("llama-1.3b", 1, 1, 64),
    ("llama-1.3b", 3, 1, 64),
    ("llama-1.3b", 2, 2, 2048),
    ("llama-0.5b", 3, 4, 2048),
)
"""Model, ZeRO stage, micro-batch size, sequence length."""
TINY_CASES = (("llama-tiny", 1, 1, 64),)


def run(recorder: Recorder, device: torch.device, *, tiny: bool) -> None:
    """Every case in an engine of its own."""
    os.environ.update(RANK="0", LOCAL_RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="29611")
    for model, stage, micro_batch, sequence in TINY_CASES if tiny else CASES:
        facts = truth_facts(MODELS[model], micro_batch, sequence, False)
        facts |= {"id": f"deepspeed-{model}-zero{stage}-b{micro_batch}-s{sequence}", "zero_or_fsdp": f"zero{stage}"}
        facts |= {"precision": "bf16", "software": {"name": "DeepSpeed + transformers", "optimizer": "torch AdamW"}}
        recorder.case(facts, lambda m=model, z=stage, b=micro_batch, s=sequence: _steps(m, z, b, s, device))  # type: ignore[misc]
        release(device)


def _steps(model_name: str, stage: int, micro_batch: int, sequence: int, device: torch.device) -> dict[str, Any]:
    import deepspeed

    size = MODELS[model_name]
    model = build_model(size, "bf16", "sdpa", "", device)
    model.train()
    config = {
        "train_micro_batch_size_per_gpu": micro_batch,
        "gradient_accumulation_steps": 1,
        "gradient_clipping": 1.0,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": stage},
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-5, "torch_adam": True}},
        "steps_per_print": 1 << 30,
    }
    engine, *_ = deepspeed.initialize(model=model, config=config)
    tokens = torch.randint(0, size.vocab, (micro_batch, sequence), device=device)

    def step() -> None:
        loss = engine(input_ids=tokens, labels=tokens).loss
        engine.backward(loss)
        engine.step()

    try:
        return measure_step(step, device)
    finally:
        engine.destroy()
