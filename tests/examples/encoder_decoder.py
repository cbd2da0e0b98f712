"""A transformer with an encoder and a decoder that attends to it, from PyTorch's own layers and from scratch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class MultiHeadAttention(nn.Module):
    """Attention of one sequence to another."""

    def __init__(self, hidden_size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(hidden_size, hidden_size)
        self.key_value = nn.Linear(hidden_size, 2 * hidden_size)
        self.out = nn.Linear(hidden_size, hidden_size)

    def forward(self, x: Tensor, memory: Tensor, *, causal: bool = False) -> Tensor:
        q = self._split(self.query(x))
        k, v = (self._split(each) for each in self.key_value(memory).chunk(2, dim=-1))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        made: Tensor = self.out(y.transpose(1, 2).flatten(2))
        return made

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)


class Layer(nn.Module):
    """Self-attention, attention to the encoder where there is one, MLP; pre-norm."""

    def __init__(self, hidden_size: int, heads: int, *, decodes: bool) -> None:
        super().__init__()
        self.self_norm = nn.LayerNorm(hidden_size)
        self.self_attention = MultiHeadAttention(hidden_size, heads)
        self.cross_norm = nn.LayerNorm(hidden_size) if decodes else None
        self.cross_attention = MultiHeadAttention(hidden_size, heads) if decodes else None
        self.mlp_norm = nn.LayerNorm(hidden_size)
        self.mlp = nn.Sequential(
            nn.Linear(hidden_size, 4 * hidden_size), nn.GELU(), nn.Linear(4 * hidden_size, hidden_size)
        )
        self.causal = decodes

    def forward(self, x: Tensor, memory: Tensor | None = None) -> Tensor:
        y = self.self_norm(x)
        x = x + self.self_attention(y, y, causal=self.causal)
        if self.cross_norm is not None and self.cross_attention is not None and memory is not None:
            x = x + self.cross_attention(self.cross_norm(x), memory)
        return torch.add(x, self.mlp(self.mlp_norm(x)))


class EncoderDecoder(nn.Module):
    """Returns the loss of the target's next tokens."""

    def __init__(
        self,
        vocabulary: int = 512,
        hidden_size: int = 128,
        heads: int = 8,
        layers: int = 2,
        batch: int = 4,
        length: int = 64,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden_size)
        self.encoder = nn.ModuleList(Layer(hidden_size, heads, decodes=False) for _ in range(layers))
        self.decoder = nn.ModuleList(Layer(hidden_size, heads, decodes=True) for _ in range(layers))
        self.head = nn.Linear(hidden_size, vocabulary, bias=False)
        self.shape = (batch, length)

    def forward(self, source: Tensor, target: Tensor, labels: Tensor) -> Tensor:
        memory = self.embedding(source)
        for layer in self.encoder:
            memory = layer(memory)
        x = self.embedding(target)
        for layer in self.decoder:
            x = layer(x, memory)
        logits = self.head(x).float()
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    def example_inputs(self) -> tuple[Tensor, ...]:
        """Source, target and labels."""
        return tuple(torch.zeros(self.shape, dtype=torch.int64) for _ in range(3))
