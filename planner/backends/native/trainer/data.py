"""The tokens that a step trains on: synthetic ones, or those of your own loader.

Your loader: a function ``factory(sequence_length, vocab_size, seed) -> TokenSource``, named on the command line as
``--data package.module:factory``.  A source is asked for samples by their global index, so every rank may ask for
different ones, and a run on another layout sees the same samples in the same steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Protocol, cast

import torch
from torch import Tensor

from planner.backends.native.trainer.mesh import Coordinates
from planner.errors import DocumentInvalid
from planner.strategy.strategy import Strategy


class TokenSource(Protocol):
    """Random access to training samples."""

    def samples(self, indices: Sequence[int]) -> Tensor:
        """Token ids [len(indices), sequence_length + 1], int64: inputs and, one further, targets."""
        ...


class SyntheticTokens:
    """Deterministic, learnable tokens: each follows from the one before it, up to a small random step."""

    def __init__(self, sequence_length: int, vocab_size: int, seed: int) -> None:
        self.sequence_length = sequence_length
        self.vocab_size = vocab_size
        self.seed = seed

    def samples(self, indices: Sequence[int]) -> Tensor:
        """A walk over the vocabulary with steps 1 .. 4 for each index."""
        return torch.stack([self._sample(index) for index in indices])

    def _sample(self, index: int) -> Tensor:
        generator = torch.Generator().manual_seed((self.seed * 1_000_003 + index) % 2**62)
        start = torch.randint(0, self.vocab_size, (1,), generator=generator)
        steps = torch.randint(1, 5, (self.sequence_length,), generator=generator)
        return torch.cat((start, start + steps.cumsum(0))) % self.vocab_size


def token_source(name: str | None, sequence_length: int, vocab_size: int, seed: int) -> TokenSource:
    """The named loader, or synthetic tokens.  Raises DocumentInvalid when the name leads nowhere."""
    if name is None:
        return SyntheticTokens(sequence_length, vocab_size, seed)
    module, _, attribute = name.partition(":")
    try:
        factory = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise DocumentInvalid(
            f"no data loader {name!r}: {error}", where="--data", hint="give package.module:function"
        ) from error
    return cast(TokenSource, factory(sequence_length, vocab_size, seed))


def sample_indices(strategy: Strategy, here: Coordinates, step: int) -> list[int]:
    """Global sample indices of one rank in one step, micro-batch after micro-batch."""
    size, dp = strategy.micro_batch_size, here.dp(strategy)
    first = step * strategy.global_batch_size
    starts = (first + (m * strategy.dp + dp) * size for m in range(strategy.num_microbatches))
    return [start + offset for start in starts for offset in range(size)]


def check_tokens(tokens: Tensor, count: int, sequence_length: int, vocab_size: int) -> Tensor:
    """Refuse, with one sentence, samples of the wrong shape or outside the vocabulary."""
    wanted = (count, sequence_length + 1)
    if tuple(tokens.shape) != wanted or tokens.dtype != torch.int64:
        raise DocumentInvalid(
            f"the loader gave {tokens.dtype} tokens of shape {tuple(tokens.shape)}, expected int64 of shape {wanted}",
            where="--data",
            hint="a sample is sequence_length + 1 tokens: the inputs, and one further the targets",
        )
    if int(tokens.min()) < 0 or int(tokens.max()) >= vocab_size:
        raise DocumentInvalid(
            f"the loader gave tokens outside 0 .. {vocab_size - 1}",
            where="--data",
            hint="use the tokenizer that belongs to the model",
        )
    return tokens
