"""A diffusion transformer: patches, adaptive layer norm from the time step, noise predicted; returns the loss."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional


class DiffusionBlock(nn.Module):
    """Attention and MLP whose norms are shifted, scaled and gated by the condition."""

    def __init__(self, hidden_size: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(hidden_size, elementwise_affine=False)
        self.norm2 = nn.LayerNorm(hidden_size, elementwise_affine=False)
        self.qkv = nn.Linear(hidden_size, 3 * hidden_size)
        self.proj = nn.Linear(hidden_size, hidden_size)
        self.fc1 = nn.Linear(hidden_size, 4 * hidden_size)
        self.fc2 = nn.Linear(4 * hidden_size, hidden_size)
        self.modulation = nn.Linear(hidden_size, 6 * hidden_size)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation(functional.silu(condition))[:, None].chunk(6, -1)
        y = self.norm1(x) * (1 + scale1) + shift1
        q, k, v = self.qkv(y).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        attended = functional.scaled_dot_product_attention(q, k, v)
        x = x + gate1 * self.proj(attended.transpose(1, 2).flatten(2))
        y = self.norm2(x) * (1 + scale2) + shift2
        return torch.add(x, gate2 * self.fc2(functional.gelu(self.fc1(y), approximate="tanh")))


class DiffusionTransformer(nn.Module):
    """Latents in, squared error of the predicted noise out."""

    def __init__(
        self,
        hidden_size: int = 128,
        heads: int = 8,
        blocks: int = 2,
        patch: int = 2,
        channels: int = 4,
        size: int = 16,
        batch: int = 8,
    ) -> None:
        super().__init__()
        self.patch, self.shape = patch, (batch, channels, size, size)
        self.embed = nn.Conv2d(channels, hidden_size, patch, patch)
        self.position = nn.Parameter(torch.zeros(1, (size // patch) ** 2, hidden_size))
        self.time = nn.Sequential(nn.Linear(64, hidden_size), nn.SiLU(), nn.Linear(hidden_size, hidden_size))
        self.blocks = nn.ModuleList(DiffusionBlock(hidden_size, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(hidden_size, elementwise_affine=False)
        self.out = nn.Linear(hidden_size, patch * patch * channels)

    def forward(self, latents: Tensor, time: Tensor, noise: Tensor) -> Tensor:
        x = self.embed(latents).flatten(2).transpose(1, 2) + self.position
        rates = torch.exp(-math.log(10000.0) * torch.arange(32, device=time.device) / 32)
        angles = time[:, None].float() * rates[None]
        condition = self.time(torch.cat([angles.cos(), angles.sin()], dim=-1).to(x.dtype))
        for block in self.blocks:
            x = block(x, condition)
        patches = functional.unfold(noise, self.patch, stride=self.patch).transpose(1, 2)
        return functional.mse_loss(self.out(self.norm(x)).float(), patches.float())

    def example_inputs(self) -> tuple[Tensor, ...]:
        """Latents, time steps, noise."""
        steps = torch.zeros(self.shape[0], dtype=torch.int64)
        return torch.empty(self.shape), steps, torch.empty(self.shape)
