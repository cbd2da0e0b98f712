"""Small modules of the families that operator-level sharding is for, each with its loss, and what they are called with.

Every size divides by four, so that all of them can be cut on eight ranks.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from planner.shard.sharding_plan import TracedInput, TracedModule
from tests.examples import llama_block


class TwoLayers(nn.Module):
    """A perceptron of two layers."""

    def __init__(self, hidden: int = 16, ffn: int = 32) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(hidden, ffn), nn.Linear(ffn, hidden)

    def forward(self, x: Tensor, wanted: Tensor) -> Tensor:
        found: Tensor = self.down(functional.gelu(self.up(x)))
        return functional.mse_loss(found, wanted)


class ConvolutionalNet(nn.Module):
    """Convolutions, batch norm with running statistics, group norm, a residual and pooling."""

    def __init__(self, channels: int = 8, classes: int = 8) -> None:
        super().__init__()
        self.stem = nn.Conv2d(4, channels, 3, padding=1, bias=False)
        self.batch_norm, self.group_norm = nn.BatchNorm2d(channels), nn.GroupNorm(4, channels)
        self.down = nn.Conv2d(channels, channels, 3, stride=2, padding=1)
        self.head = nn.Linear(channels, classes)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        x = functional.relu(self.batch_norm(self.stem(images)))
        x = functional.max_pool2d(self.group_norm(x) + x, 2)
        x = functional.relu(self.down(x)).mean((2, 3))
        return functional.cross_entropy(self.head(x), labels)


class EncoderDecoder(nn.Module):
    """PyTorch's own decoder layer, attending to an encoded source."""

    def __init__(self, hidden: int = 16, heads: int = 4) -> None:
        super().__init__()
        self.encoder = nn.Linear(hidden, hidden)
        self.decoder = nn.TransformerDecoderLayer(hidden, heads, 2 * hidden, dropout=0.0, batch_first=True)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        return functional.mse_loss(self.decoder(target, functional.gelu(self.encoder(source))), target)


class DenseMixture(nn.Module):
    """Experts that all see all tokens, weighted by the two best scores."""

    def __init__(self, hidden: int = 16, experts: int = 4, ffn: int = 32) -> None:
        super().__init__()
        self.router = nn.Linear(hidden, experts, bias=False)
        self.up = nn.Parameter(torch.randn(experts, hidden, ffn) / 4)
        self.down = nn.Parameter(torch.randn(experts, ffn, hidden) / 4)

    def forward(self, x: Tensor, wanted: Tensor) -> Tensor:
        scores = functional.softmax(self.router(x), dim=-1)
        best, chosen = scores.topk(2, dim=-1)
        gates = torch.zeros_like(scores).scatter(-1, chosen, best)
        inner = functional.silu(torch.einsum("bth,ehf->ebtf", x, self.up))
        found = torch.einsum("ebth,bte->bth", torch.einsum("ebtf,efh->ebth", inner, self.down), gates)
        return functional.mse_loss(found, wanted)


class LlamaLayer(nn.Module):
    """Embedding and one Llama block."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(16, 32)
        self.block = llama_block.LlamaBlock(32, 64, 4, 4, 8, 8)

    def forward(self, tokens: Tensor, wanted: Tensor) -> Tensor:
        return functional.mse_loss(self.block(self.embedding(tokens)), wanted)


class Dropout(nn.Module):
    """Draws random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return functional.dropout(self.layer(x), 0.5).mean()


INPUTS: dict[type[nn.Module], tuple[tuple[str, tuple[int, ...], str], ...]] = {
    TwoLayers: (("x", (8, 4, 16), "float32"), ("wanted", (8, 4, 16), "float32")),
    ConvolutionalNet: (("images", (8, 4, 16, 16), "float32"), ("labels", (8,), "int64")),
    EncoderDecoder: (("source", (8, 4, 16), "float32"), ("target", (8, 4, 16), "float32")),
    DenseMixture: (("x", (8, 4, 16), "float32"), ("wanted", (8, 4, 16), "float32")),
    LlamaLayer: (("tokens", (8, 8), "int64"), ("wanted", (8, 8, 32), "float32")),
    Dropout: (("x", (8, 8), "float32"),),
}


def traced_module(kind: type[nn.Module]) -> TracedModule:
    """What a plan says of the module; the hash of its graph is filled in by who traces it."""
    inputs = tuple(TracedInput(name=name, dtype=dtype, shape=shape) for name, shape, dtype in INPUTS[kind])
    return TracedModule(module=f"{__name__}:{kind.__name__}", inputs=inputs, dtype="float32", graph_hash="")
