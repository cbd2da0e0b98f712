"""The models of a device run: sizes only, weights are random.

Each name says the family; sizes are those of public models cut in depth where the whole would not fit with an fp32
master copy, and the same rows are told to every software.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ModelSize:
    """One decoder.  ``experts`` 0 = dense; ``ffn_hidden`` is that of one expert in a mixture."""

    name: str
    layers: int
    hidden: int
    ffn_hidden: int
    heads: int
    kv_heads: int
    vocab: int
    experts: int = 0
    topk: int = 0
    head_dim: int = 128

    @property
    def parameters(self) -> int:
        """Weights without biases and norms' vectors, input and output embeddings apart."""
        attention = 2 * self.hidden * self.head_dim * (self.heads + self.kv_heads)
        feed_forward = 3 * self.hidden * self.ffn_hidden * max(self.experts, 1) + self.hidden * self.experts
        return self.layers * (attention + feed_forward) + 2 * self.vocab * self.hidden


MODELS = {
    size.name: size
    for size in (
        ModelSize("llama-tiny", 2, 128, 256, 4, 2, 512, head_dim=32),
        ModelSize("mixtral-tiny", 2, 128, 128, 4, 2, 512, experts=4, topk=2, head_dim=32),
        ModelSize("qwen3moe-tiny", 2, 128, 64, 4, 2, 512, experts=8, topk=2, head_dim=32),
        ModelSize("llama-0.5b", 14, 1536, 4096, 12, 4, 32000),
        ModelSize("llama-1.3b", 24, 2048, 5504, 16, 16, 32000),
        ModelSize("llama-3b", 28, 3072, 8192, 24, 8, 32000),
        ModelSize("llama-8b-4layers", 4, 4096, 14336, 32, 8, 128256),
        ModelSize("qwen3moe-1.3b", 12, 1024, 512, 16, 4, 32000, experts=64, topk=8, head_dim=64),
        ModelSize("qwen3moe-30b-4layers", 4, 2048, 768, 32, 4, 32000, experts=128, topk=8),
        ModelSize("mixtral-1.1b", 12, 1024, 3584, 16, 4, 32000, experts=8, topk=2, head_dim=64),
    )
}
