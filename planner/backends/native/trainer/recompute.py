"""The parts of a layer that run again in the backward pass instead of keeping their activations.

``full`` wraps the whole block; ``selective`` wraps the named modules only.  ``activation`` wraps the activation
together with the down projection that keeps its output: torch's checkpoint stops the second run as soon as the last
kept tensor is there (early stop), so that the matmul itself does not run twice.  ``norm`` works the other way round,
in ``planner.backends.native.trainer.branch_input``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from torch import Tensor
from torch.utils.checkpoint import checkpoint

from planner.plan.plan import StagePlan


@dataclass(frozen=True, slots=True)
class RecomputeChoice:
    """What one layer runs again: everything, or the named modules."""

    whole_block: bool = False
    modules: frozenset[str] = frozenset()

    def covers(self, module: str) -> bool:
        """Whether the whole of ``module`` runs again."""
        return self.whole_block or module in self.modules

    def run(self, module: str, function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        """Call ``function``, keeping only ``inputs`` when ``module`` is to be recomputed."""
        return _checkpointed(function, *inputs) if module in self.modules else function(*inputs)

    def run_block(self, function: Callable[[Tensor], Tensor], hidden: Tensor) -> Tensor:
        """Call a whole block, keeping only its input when the block is to be recomputed."""
        return _checkpointed(function, hidden) if self.whole_block else function(hidden)


KEEP_ALL = RecomputeChoice()


def layer_choices(stage: StagePlan) -> dict[int, RecomputeChoice]:
    """Choice of every layer of a stage: the first ``num_layers_per_chunk`` layers of each chunk use its policy."""
    policy = stage.recompute.policy
    chosen = RecomputeChoice(
        whole_block=policy == "full",
        modules=frozenset(stage.recompute.modules) if policy == "selective" else frozenset(),
    )
    choices: dict[int, RecomputeChoice] = {}
    counts = stage.recompute.num_layers_per_chunk or (0,) * len(stage.chunks)
    for chunk, count in zip(stage.chunks, counts, strict=True):
        for offset in range(chunk.num_layers):
            choices[chunk.first_layer + offset] = chosen if offset < count else KEEP_ALL
    return choices


def _checkpointed(function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    # No dropout in this trainer, so there is no random state to restore.
    return cast(Tensor, checkpoint(function, *inputs, use_reentrant=False, preserve_rng_state=False))
