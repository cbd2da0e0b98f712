"""The adapters of a configuration: ``peft`` as the fields of ``Training``, and where the plan counts otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.backends.megatron_bridge.adapters import FUSED, training_of
from planner.backends.megatron_bridge.settings import Settings
from planner.backends.rules.rule import latent, mixture
from planner.errors import DocumentInvalid
from planner.model.spec import ModelSpec

_FIELDS = ("target_modules", "exclude_modules", "dim")


@dataclass(frozen=True, slots=True)
class SaidAdapters:
    """``name``: Bridge's class.  ``training``: the fields of ``Training`` that it means."""

    name: str
    training: dict[str, Any]

    def told(self, model: ModelSpec) -> list[str]:
        """What of these adapters the prediction does not have."""
        lines = []
        shares = [group for group in FUSED if set(group) <= set(self.training["targets"])]
        if self.name != "CanonicalLoRA" and not latent(model):
            named = " and of ".join(", ".join(group) for group in shares)
            lines += (
                [f"{self.name}: one A is shared by the adapters of {named}; predicted with one each"] if named else []
            )
        moe = mixture(model)
        if moe is not None and {"gate", "up", "down"} & set(self.training["targets"]):
            lines.append("adapters of routed experts are not predicted")
        return lines


def adapters_of(settings: Settings, where: str) -> SaidAdapters | None:
    """The adapters that a configuration trains; None where every weight learns.

    Raises DocumentInvalid for other classes than LoRA, CanonicalLoRA and DoRA, and for modules without a name in plans.
    """
    name = settings.value("peft")
    if name is None:
        if not settings.has_section("peft"):
            return None
        raise DocumentInvalid(
            "it sets fields of adapters (peft) and nothing says of which class",
            where=where,
            hint="read a peft recipe, or set peft to LoRA(...)",
        )
    fields = {key: value for key in _FIELDS if (value := settings.value(f"peft.{key}")) is not None}
    return SaidAdapters(str(name), training_of(str(name), fields, where))
