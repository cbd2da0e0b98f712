"""The dense feed-forward part of a layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from torch import Tensor, nn
from torch.nn import functional

from planner.backends.native.trainer.branch_input import Again, Entry, PlainEntry, kept_input
from planner.backends.native.trainer.recompute import KEEP_ALL, RecomputeChoice


def _quick_gelu(values: Tensor) -> Tensor:
    return values * (1.702 * values).sigmoid()


ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "silu": functional.silu,
    "swish": functional.silu,
    "gelu": functional.gelu,
    "gelu_new": partial(functional.gelu, approximate="tanh"),
    "gelu_fast": partial(functional.gelu, approximate="tanh"),
    "gelu_pytorch_tanh": partial(functional.gelu, approximate="tanh"),
    "quick_gelu": _quick_gelu,
    "relu": functional.relu,
}
"""Activation by its HF name."""


class FeedForward(nn.Module):
    """``down(act(gate(x)) * up(x))``, or ``down(act(up(x)))`` when not gated.

    ``region``: the recompute module that this is part of, ``mlp`` or (shared experts) ``moe``.
    """

    def __init__(
        self, hidden_size: int, width: int, *, gated: bool, bias: bool, activation: str, region: str = "mlp"
    ) -> None:
        super().__init__()
        self.up = nn.Linear(hidden_size, width, bias=bias)
        self.gate = nn.Linear(hidden_size, width, bias=bias) if gated else None
        self.down = nn.Linear(width, hidden_size, bias=bias)
        self.activation = ACTIVATIONS[activation]
        self.region = region
        self.entry: Entry = PlainEntry()
        self.recompute: RecomputeChoice = KEEP_ALL

    def forward(self, hidden: Tensor, again: Again | None = None) -> Tensor:
        """[batch, tokens, hidden] -> the same; ``again`` makes ``hidden`` once more (see ``kept_input``)."""
        with kept_input(self.entry, hidden, again, checkpointed=self.recompute.covers(self.region)) as whole:
            up = self.up(whole)
            gate = None if self.gate is None else self.gate(whole)
        if gate is None:
            return self.recompute.run("activation", self._plain, up)
        return self.recompute.run("activation", self._gated, gate, up)

    def _plain(self, up: Tensor) -> Tensor:
        out: Tensor = self.down(self.activation(up))
        return out

    def _gated(self, gate: Tensor, up: Tensor) -> Tensor:
        out: Tensor = self.down(self.activation(gate) * up)
        return out
