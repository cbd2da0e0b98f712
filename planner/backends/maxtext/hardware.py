"""On what does MaxText run, and what follows from it: ``hardware``, attention kernel, fp8 recipe?"""

from __future__ import annotations

from typing import Any

from planner.strategy import Strategy

AMD = frozenset({"cdna2", "cdna3", "cdna4", "cdna5"})
NVIDIA = frozenset({"volta", "ampere", "ada", "hopper", "blackwell", "rubin"})


def is_tpu(architecture: str) -> bool:
    """Whether the device is a TPU; everything else is taken for a GPU."""
    return architecture.startswith("tpu")


def attention_keys(architecture: str, s: Strategy) -> dict[str, Any]:
    """Kernel and context parallelism.  A ring and ulysses run on tokamax's splash attention (TPU), or cuDNN (GPU).

    Ulysses ranks see whole samples, so nothing is balanced.  Packed samples would need segment limits on GPUs and are
    not for a ring of latent attention: off.
    """
    keys: dict[str, Any] = {"attention": "flash" if is_tpu(architecture) else "cudnn_flash_te", "packing": False}
    if s.cp > 1:
        ring = s.cp_kind == "ring"
        keys |= {"context_parallel_strategy": "ring" if ring else "ulysses", "context_parallel_load_balance": ring}
        if is_tpu(architecture):
            keys["use_tokamax_splash"] = True
    return keys


def quantization_keys(architecture: str) -> dict[str, Any]:
    """How matrix products run in fp8.  Transformer Engine's scaling of this step works with gradient accumulation."""
    if is_tpu(architecture):
        return {"quantization": "fp8_full", "use_qwix_quantization": True}
    return {"quantization": "te_fp8_currentscaling"}
