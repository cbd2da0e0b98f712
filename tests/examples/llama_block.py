"""Llama as users write it: a block of grouped-query attention and a gated MLP, and a whole model of such blocks."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class RootMeanSquareNorm(nn.Module):
    """Normalises in fp32, as Llama does."""

    def __init__(self, hidden_size: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        wide = x.float()
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return torch.mul(self.weight, scaled.to(x.dtype))


def rotary_tables(sequence: int, head_dim: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines: [sequence, head_dim] each."""
    inverse = 1.0 / (500000.0 ** (torch.arange(0, head_dim, 2, device=like.device).float() / head_dim))
    angles = torch.outer(torch.arange(sequence, device=like.device).float(), inverse)
    both = torch.cat([angles, angles], dim=-1)
    return both.cos().to(like.dtype), both.sin().to(like.dtype)


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotary position embedding of [batch, heads, sequence, head_dim]."""
    half = x.shape[-1] // 2
    turned = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
    return x * cosine + turned * sine


class Attention(nn.Module):
    """Causal grouped-query attention."""

    def __init__(self, hidden_size: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, hidden_size // heads
        self.wq = nn.Linear(hidden_size, heads * self.head_dim, bias=False)
        self.wk = nn.Linear(hidden_size, kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(hidden_size, kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(heads * self.head_dim, hidden_size, bias=False)

    def forward(self, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        batch, sequence, _ = x.shape
        q = self.wq(x).view(batch, sequence, self.heads, self.head_dim).transpose(1, 2)
        k = self.wk(x).view(batch, sequence, self.kv_heads, self.head_dim).transpose(1, 2)
        v = self.wv(x).view(batch, sequence, self.kv_heads, self.head_dim).transpose(1, 2)
        q, k = rotate(q, cosine, sine), rotate(k, cosine, sine)
        k, v = (each.repeat_interleave(self.heads // self.kv_heads, dim=1) for each in (k, v))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        made: Tensor = self.wo(y.transpose(1, 2).reshape(batch, sequence, -1))
        return made


class FeedForward(nn.Module):
    """Gated MLP."""

    def __init__(self, hidden_size: int, ffn_size: int) -> None:
        super().__init__()
        self.w1 = nn.Linear(hidden_size, ffn_size, bias=False)
        self.w3 = nn.Linear(hidden_size, ffn_size, bias=False)
        self.w2 = nn.Linear(ffn_size, hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.w2(functional.silu(self.w1(x)) * self.w3(x))
        return made


class LlamaBlock(nn.Module):
    """One layer; called with hidden states alone, it makes its own rotary tables."""

    def __init__(
        self,
        hidden_size: int = 4096,
        ffn_size: int = 14336,
        heads: int = 32,
        kv_heads: int = 8,
        sequence: int = 8192,
        batch: int = 2,
    ) -> None:
        super().__init__()
        self.attention_norm = RootMeanSquareNorm(hidden_size)
        self.attention = Attention(hidden_size, heads, kv_heads)
        self.ffn_norm = RootMeanSquareNorm(hidden_size)
        self.feed_forward = FeedForward(hidden_size, ffn_size)
        self.shape = (batch, sequence, hidden_size)
        self.head_dim = hidden_size // heads

    def forward(self, x: Tensor, cosine: Tensor | None = None, sine: Tensor | None = None) -> Tensor:
        if cosine is None or sine is None:
            cosine, sine = rotary_tables(x.shape[1], self.head_dim, x)
        x = x + self.attention(self.attention_norm(x), cosine, sine)
        return torch.add(x, self.feed_forward(self.ffn_norm(x)))

    def example_inputs(self) -> tuple[Tensor, ...]:
        """Hidden states that come from another layer, so that their gradient is wanted."""
        return (torch.empty(self.shape, requires_grad=True),)


class Llama(nn.Module):
    """Embedding, blocks, head, and the loss of the next token."""

    def __init__(
        self,
        vocabulary: int = 128256,
        hidden_size: int = 4096,
        ffn_size: int = 14336,
        heads: int = 32,
        kv_heads: int = 8,
        layers: int = 32,
        sequence: int = 8192,
        batch: int = 2,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, hidden_size)
        self.layers = nn.ModuleList(
            LlamaBlock(hidden_size, ffn_size, heads, kv_heads, sequence, batch) for _ in range(layers)
        )
        self.norm = RootMeanSquareNorm(hidden_size)
        self.head = nn.Linear(hidden_size, vocabulary, bias=False)
        self.shape, self.vocabulary, self.head_dim = (batch, sequence), vocabulary, hidden_size // heads

    def forward(self, tokens: Tensor, labels: Tensor) -> Tensor:
        x = self.embedding(tokens)
        cosine, sine = rotary_tables(tokens.shape[1], self.head_dim, x)
        for block in self.layers:
            x = block(x, cosine, sine)
        logits = self.head(self.norm(x)).float()
        return functional.cross_entropy(logits.flatten(0, 1), labels.flatten())

    def example_inputs(self) -> tuple[Tensor, ...]:
        """Tokens and the tokens that follow them."""
        return torch.zeros(self.shape, dtype=torch.int64), torch.zeros(self.shape, dtype=torch.int64)
