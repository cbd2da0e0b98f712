"""What each argument of a training program is to a plan: used, without influence, or not modelled.

The lists are data beside this module, which say their sources: ``megatron_arguments.toml``, and what others add in
``mindspeed_arguments.toml`` and ``megatron_deepspeed_arguments.toml``.  A name is in one list of its file, without its
dashes and with ``-`` for ``_``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from profiles.shipped_tables import shipped_words


@dataclass(frozen=True, slots=True)
class KnownArguments:
    """Names of the arguments of one program, by what a plan makes of them."""

    used: frozenset[str]
    """Read: they say the model, the work, the strategy or the number of devices."""
    no_influence: frozenset[str]
    """They change neither time nor memory of a predicted training step."""
    not_modelled: frozenset[str]
    """They may change time, memory or the model, and the planner has no word for them: every answer tells them."""
    other_models: frozenset[str] = frozenset()
    """Refused by name: with them the other arguments do not describe what is trained."""
    assumed_here: frozenset[str] = frozenset()
    """Arguments of Megatron-LM that are not modelled there and that this program's own kernels replace."""
    releases: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """Every name that is used, without influence or not modelled."""
        return self.used | self.no_influence | self.not_modelled

    def list_of(self, name: str) -> str:
        """``used``, ``no_influence`` or ``not_modelled``; empty where the program has no such argument."""
        lists = {"used": self.used, "no_influence": self.no_influence, "not_modelled": self.not_modelled}
        return next((key for key, names in lists.items() if name in names), "")


@cache
def known_arguments(program: str) -> KnownArguments:
    """The lists of ``megatron``, or what ``mindspeed`` or ``megatron_deepspeed`` adds to it."""
    lists = shipped_words("planner.model", f"{program}_arguments.toml")
    return KnownArguments(**{key: frozenset(names) for key, names in lists.items()})
