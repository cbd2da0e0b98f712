"""Ranks of unequal speed on one machine: a loader for ``--data tests.slow_ranks:tokens`` that slows some of them down.

Every chunk of a slow rank is followed by matrix products for a multiple of the processor time that the chunk itself
took, forward and backward, as if its device were so many times slower.  ``SLOW_RANKS``: ``0=3`` makes rank 0 take three
times as long.
"""

from __future__ import annotations

import os
import time
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from planner.backends.native.trainer.data import SyntheticTokens
from planner.backends.native.trainer.model import DecoderChunk

VARIABLE = "SLOW_RANKS"
SIDE = 96
BACKWARD = 2.0
"""Products of the backward pass over those of the forward one."""


def tokens(sequence_length: int, vocab_size: int, seed: int) -> SyntheticTokens:
    """The trainer's own samples; the rank is slow from here on."""
    times = dict(pair.split("=") for pair in os.environ.get(VARIABLE, "").split(",") if pair)
    slower = float(times.get(os.environ.get("RANK", "0"), 1.0)) - 1.0
    if slower > 0 and not _INSTALLED:
        _INSTALLED.append(_Brake(slower))
    return SyntheticTokens(sequence_length, vocab_size, seed)


class _Brake:
    def __init__(self, slower: float) -> None:
        self.slower, self.begun_s, self.square = slower, 0.0, torch.ones(SIDE, SIDE)
        register_module_forward_pre_hook(self.begin)
        register_module_forward_hook(self.end)

    def begin(self, module: torch.nn.Module, _: Any) -> None:
        if isinstance(module, DecoderChunk):
            self.begun_s = time.process_time()

    def end(self, module: torch.nn.Module, _: Any, output: torch.Tensor) -> None:
        if not isinstance(module, DecoderChunk):
            return
        own_s = time.process_time() - self.begun_s
        self.work(self.slower * own_s)
        if output.requires_grad:
            output.register_hook(lambda _: self.work(BACKWARD * self.slower * own_s))  # type: ignore[no-untyped-call]

    def work(self, seconds: float) -> None:
        """Matrix products for so long."""
        end_s = time.process_time() + seconds
        while time.process_time() < end_s:
            torch.mm(self.square, self.square)


_INSTALLED: list[_Brake] = []
