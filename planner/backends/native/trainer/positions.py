"""The positions in the sequence of this rank's tokens, and the rotation of queries and keys there."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Rotation:
    """Cosines and sines of the rotary angles, fp32, each [local tokens, rotated width / 2].

    A plain object, not a buffer and not a forward argument: FSDP would cast an argument to bf16, which cannot tell
    angles of neighbouring far positions apart.
    """

    cosines: Tensor
    sines: Tensor

    def apply(self, heads: Tensor) -> Tensor:
        """Rotate the first ``rotated width`` features of [batch, tokens, heads, features], halves paired.

        Formula: RoFormer (arXiv 2104.09864, equation 34) in the half-split layout of the HF llama class.
        """
        half = self.cosines.shape[-1]
        turned, kept = heads[..., : 2 * half].float(), heads[..., 2 * half :]
        first, second = turned[..., :half], turned[..., half:]
        cosines, sines = self.cosines[:, None, :], self.sines[:, None, :]
        rotated = torch.cat((first * cosines - second * sines, second * cosines + first * sines), dim=-1)
        return torch.cat((rotated.to(heads.dtype), kept), dim=-1)


def rotation(positions: Tensor, width: int, base: float) -> Rotation:
    """Angles ``position / base^(2 i / width)`` for i in 0 .. width/2 - 1."""
    exponents = torch.arange(0, width, 2, dtype=torch.float64, device="cpu") / width
    angles = positions.to(device="cpu", dtype=torch.float64)[:, None] * (base**-exponents)[None, :]
    return Rotation(
        angles.cos().to(positions.device, torch.float32),
        angles.sin().to(positions.device, torch.float32),
    )


def local_positions(sequence_length: int, cp: int, cp_rank: int, *, head_tail: bool) -> Tensor:
    """Token positions of one context-parallel rank, ascending inside each of its parts.

    ``head_tail``: the sequence is cut in 2 cp parts and rank r holds parts r and 2 cp - 1 - r, so that causal
    attention costs every rank the same; otherwise one contiguous part a rank.
    """
    if cp == 1:
        return torch.arange(sequence_length)
    if not head_tail:
        part = sequence_length // cp
        return torch.arange(cp_rank * part, (cp_rank + 1) * part)
    part = sequence_length // (2 * cp)
    tail = 2 * cp - 1 - cp_rank
    return torch.cat((torch.arange(cp_rank * part, (cp_rank + 1) * part), torch.arange(tail * part, (tail + 1) * part)))
