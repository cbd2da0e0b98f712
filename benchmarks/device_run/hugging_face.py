"""Training steps of Hugging Face transformers under Accelerate, as its Trainer runs them.

    forward with labels, backward, gradient clipping at 1, torch's fused AdamW, gradients set to None

``amp``: fp32 weights under bf16 autocast (the Trainer's ``bf16=True``); ``bf16``: weights, gradients and moments in
bf16.  Models are built from a config with random weights, tokens are random.
"""

from __future__ import annotations

import gc
from dataclasses import asdict, dataclass
from typing import Any

import torch

from benchmarks.device_run.models import MODELS, ModelSize
from benchmarks.device_run.records import Recorder, error_line, is_out_of_memory
from benchmarks.device_run.steps import measure_step

Shape = tuple[int, int, bool]
"""Micro-batch size, sequence length, gradient checkpointing."""


@dataclass(frozen=True, slots=True)
class Group:
    """Runs of one model that share its weights and optimizer."""

    model: str
    precision: str
    shapes: tuple[Shape, ...]
    attention: str = "sdpa"
    experts: str = ""
    compiled: bool = False


GROUPS: tuple[Group, ...] = (
    Group("llama-1.3b", "amp", ((1, 2048, False), (2, 2048, False), (4, 2048, False), (4, 2048, True), (1, 64, False),
          (1, 4096, False), (8, 1024, False), (8, 2048, True))),
    Group("qwen3moe-1.3b", "amp", ((1, 2048, False), (4, 2048, False), (4, 2048, True), (1, 64, False)),
          experts="grouped_mm"),
    Group("llama-0.5b", "amp", ((1, 1024, False), (4, 2048, False), (8, 2048, False), (1, 64, False), (1, 64, True),
          (2, 4096, False))),
    Group("mixtral-1.1b", "amp", ((1, 2048, False), (4, 2048, False), (1, 64, False)), experts="grouped_mm"),
    Group("llama-3b", "amp", ((1, 2048, False), (2, 2048, False), (2, 2048, True), (4, 2048, True), (1, 4096, False))),
    Group("llama-1.3b", "bf16", ((2, 2048, False), (4, 2048, False), (1, 64, False))),
    Group("qwen3moe-1.3b", "amp", ((1, 2048, False),), experts="eager"),
    Group("mixtral-1.1b", "amp", ((1, 2048, False), (4, 2048, False)), experts="eager"),
    Group("llama-1.3b", "amp", ((1, 2048, False), (2, 2048, False)), attention="eager"),
    Group("qwen3moe-30b-4layers", "amp", ((1, 2048, False), (2, 4096, False)), experts="grouped_mm"),
    Group("llama-8b-4layers", "amp", ((1, 2048, False), (1, 8192, False), (2, 4096, True))),
    Group("llama-0.5b", "amp", ((4, 2048, False), (1, 1024, False)), compiled=True),
)  # fmt: skip
EXPANDABLE_GROUPS: tuple[Group, ...] = (
    Group("llama-1.3b", "amp", ((4, 2048, False), (4, 2048, True))),
    Group("qwen3moe-1.3b", "amp", ((4, 2048, False),), experts="grouped_mm"),
    Group("llama-3b", "amp", ((2, 2048, False),)),
)
"""What is run once more with ``PYTORCH_ALLOC_CONF=expandable_segments:True``."""
TINY_GROUPS: tuple[Group, ...] = (
    Group("llama-tiny", "amp", ((1, 64, False), (2, 64, True))),
    Group("llama-tiny", "bf16", ((1, 64, False),), attention="eager"),
    Group("qwen3moe-tiny", "amp", ((1, 64, False),), experts="eager"),
    Group("mixtral-tiny", "amp", ((1, 64, False),), experts="grouped_mm"),
)


def run(recorder: Recorder, device: torch.device, *, tiny: bool, expandable: bool) -> None:
    """All groups, most valuable first."""
    for group in TINY_GROUPS if tiny else (EXPANDABLE_GROUPS if expandable else GROUPS):
        if recorder.expired():
            recorder.write({**asdict(group), "ok": False, "error": "no time was left"})
            continue
        _group(recorder, group, device, expandable)
        release(device)


def _group(recorder: Recorder, group: Group, device: torch.device, expandable: bool) -> None:
    size = MODELS[group.model]
    try:
        trainer = _Trainer(group, device)
    except Exception as error:
        failed = {"id": f"hf-{group.model}", **asdict(group), "ok": False, "error": error_line(error)}
        recorder.write({**failed, "out_of_memory": is_out_of_memory(error)})
        return
    for micro_batch, sequence, checkpointing in group.shapes:
        name = run_name(group, micro_batch, sequence, checkpointing, expandable)
        facts = truth_facts(size, micro_batch, sequence, checkpointing)
        facts |= {"id": name, "precision": "bf16", "software": trainer.software(checkpointing, expandable)}
        release(device)
        recorder.case(facts, lambda shape=(micro_batch, sequence, checkpointing): trainer.measure(*shape))  # type: ignore[misc]


def run_name(group: Group, micro_batch: int, sequence: int, checkpointing: bool, expandable: bool) -> str:
    """The id of one run."""
    parts = ["hf", group.model, group.precision, group.attention, group.experts]
    parts += ["compile" if group.compiled else "", "ckpt" if checkpointing else "", "exp" if expandable else ""]
    return "-".join(part for part in (*parts, f"b{micro_batch}", f"s{sequence}") if part)


def truth_facts(size: ModelSize, micro_batch: int, sequence: int, checkpointing: bool) -> dict[str, Any]:
    """The columns of a truth file that a run on one device has before it is measured."""
    return {
        "model": size.name,
        "params_b": round(size.parameters / 1e9, 4),
        "layers": size.layers,
        "hidden": size.hidden,
        "ffn_hidden": size.ffn_hidden,
        "heads": size.heads,
        "kv_heads": size.kv_heads,
        "head_dim": size.head_dim,
        "vocab": size.vocab,
        "experts": size.experts or None,
        "topk": size.topk or None,
        "seq_len": sequence,
        "gbs": micro_batch,
        "mbs": micro_batch,
        "recompute": "full" if checkpointing else "none",
    }


def release(device: torch.device) -> None:
    """Give back what is no longer used, so that reserved memory is that of the next run."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


class _Trainer:
    """A model with its optimizer, ready for steps of any shape."""

    def __init__(self, group: Group, device: torch.device) -> None:
        from accelerate import Accelerator
        from accelerate.state import AcceleratorState

        # One process runs groups of several precisions; Accelerate keeps the first one otherwise.
        AcceleratorState._reset_state(reset_partial_state=True)
        self.group, self.device = group, device
        self.accelerator = Accelerator(mixed_precision="bf16" if group.precision == "amp" else "no", cpu=_host(device))
        model = build_model(MODELS[group.model], group.precision, group.attention, group.experts, device)
        model.train()
        if group.compiled:
            for layer in model.model.layers:
                layer.compile()
        fused = {"fused": True} if device.type == "cuda" else {}
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, **fused)  # type: ignore[arg-type]
        self.model, self.optimizer = self.accelerator.prepare(model, optimizer)
        self.vocab = MODELS[group.model].vocab

    def measure(self, micro_batch: int, sequence: int, checkpointing: bool) -> dict[str, Any]:
        """Steps of one shape."""
        inner = self.accelerator.unwrap_model(self.model)
        if checkpointing:
            inner.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        else:
            inner.gradient_checkpointing_disable()
        tokens = torch.randint(0, self.vocab, (micro_batch, sequence), device=self.device)

        def step() -> None:
            loss = self.model(input_ids=tokens, labels=tokens).loss
            self.accelerator.backward(loss)
            self.accelerator.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad()

        try:
            return measure_step(step, self.device)
        finally:
            self.optimizer.zero_grad()

    def software(self, checkpointing: bool, expandable: bool) -> dict[str, Any]:
        """What ran, in the words of a truth file's notes."""
        group = self.group
        return {
            "name": "transformers + accelerate",
            "weights": "fp32, bf16 autocast" if group.precision == "amp" else "bf16 weights, gradients and moments",
            "attention": group.attention,
            "experts": group.experts,
            "compile": "each layer" if group.compiled else "none",
            "gradient_checkpointing": "each layer, non-reentrant" if checkpointing else "off",
            "optimizer": "torch AdamW fused",
            "allocator": "expandable_segments" if expandable else "default",
        }


def build_model(size: ModelSize, precision: str, attention: str, experts: str, device: torch.device) -> Any:
    """A causal language model of transformers with random weights, made on the device."""
    from transformers import AutoModelForCausalLM, LlamaConfig, MixtralConfig, Qwen3MoeConfig

    common: dict[str, Any] = {
        "vocab_size": size.vocab, "hidden_size": size.hidden, "intermediate_size": size.ffn_hidden,
        "num_hidden_layers": size.layers, "num_attention_heads": size.heads, "num_key_value_heads": size.kv_heads,
        "head_dim": size.head_dim, "max_position_embeddings": 32768, "tie_word_embeddings": False, "use_cache": False,
    }  # fmt: skip
    if not size.experts:
        config: Any = LlamaConfig(**common)
    elif size.name.startswith("mixtral"):
        config = MixtralConfig(**common, num_local_experts=size.experts, num_experts_per_tok=size.topk)
    else:
        more: dict[str, Any] = {"moe_intermediate_size": size.ffn_hidden, "num_experts": size.experts}
        config = Qwen3MoeConfig(**common, **more, num_experts_per_tok=size.topk, norm_topk_prob=True)
    chosen = {"experts_implementation": experts} if experts else {}
    dtype = torch.float32 if precision == "amp" else torch.bfloat16
    with torch.device(device):
        chosen |= {"attn_implementation": attention}
        return AutoModelForCausalLM.from_config(config, dtype=dtype, **chosen)


def _host(device: torch.device) -> bool:
    return device.type != "cuda"
