"""The optimizer on the shards: AdamW or SGD, element by element, so that a rank needs only its shard."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch.optim import SGD, AdamW, Optimizer

from planner.backends.native.trainer.operator_sharding.settings import RunSettings
from planner.backends.rules.optimizer_recipe import BETAS, EPSILON, SGD_MOMENTUM
from planner.errors import BackEndRefused

OPTIMIZERS = ("adam", "adamw", "sgd")


def build_optimizer(name: str, parameters: Sequence[Tensor], settings: RunSettings) -> Optimizer:
    """The optimizer over plain tensors, whole or sharded; vectors and scalars do not decay.

    Raises BackEndRefused for an optimizer that does not work element by element, or is not known.
    """
    groups = [
        {"params": [each for each in parameters if (each.ndim > 1) == decays], "weight_decay": decay}
        for decays, decay in ((True, settings.weight_decay), (False, 0.0))
    ]
    groups = [group for group in groups if group["params"]]
    if name in ("adamw", "adam"):
        return AdamW(groups, lr=settings.learning_rate, betas=BETAS, eps=EPSILON)
    if name == "sgd":
        return SGD(groups, lr=settings.learning_rate, momentum=SGD_MOMENTUM)
    raise BackEndRefused(
        f"the native runtime has no optimizer {name!r} for shards",
        where="--optimizer",
        hint=f"plan with one of {', '.join(OPTIMIZERS)}",
    )
