"""How a script's arguments send routed tokens to their experts.

Facts (Megatron-LM core 0.19.2 core/transformer/transformer_config.py:862-875, 1589-1598): the type is ``allgather``
where nobody says another, the back-end of ``flex`` is ``deepep``; ``--moe-enable-deepep`` is its older word, and
``alltoall_seq`` that of an all-to-all in releases before 0.14.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.model.megatron_flags import MegatronFlags

DEFAULT = "allgather"
_TYPES = {"allgather": "allgather", "alltoall": "alltoall", "alltoall_seq": "alltoall"}
_FLEX = {"deepep": "deepep", "hybridep": "hybridep", "ncclep": "ncclep"}


def dispatcher_of(flags: MegatronFlags) -> str | None:
    """The dispatcher that the arguments name, ``ncclep`` among them; None where they name none.

    Records a finding for a word that the release does not know.
    """
    kind, backend = flags.text("moe-token-dispatcher-type"), flags.text("moe-flex-dispatcher-backend")
    older = flags.has("moe-enable-deepep")
    if kind is None:
        return None
    if kind != "flex":
        return _known(flags, "moe-token-dispatcher-type", kind, {**_TYPES, "flex": "flex"})
    backend = "deepep" if older or backend is None else backend
    return _known(flags, "moe-flex-dispatcher-backend", backend, _FLEX)


def read_dispatcher(flags: MegatronFlags) -> dict[str, Any]:
    """The field of ``Strategy``; NCCL EP is taken as DeepEP, which sends as it does."""
    said = dispatcher_of(flags)
    return {} if said is None else {"dispatcher": "deepep" if said == "ncclep" else said}


def default_dispatcher(flags: MegatronFlags, strategy: Mapping[str, Any]) -> dict[str, Any]:
    """The release's own where experts are dealt and nobody says it; Megatron-DeepSpeed sends by an all-to-all."""
    deepspeed = any(flags.has(name) for name in ("deepspeed", "deepspeed-config", "zero-stage"))
    if strategy.get("ep", 1) == 1 or "dispatcher" in strategy or deepspeed:
        return {}
    return {"dispatcher": DEFAULT}


def _known(flags: MegatronFlags, name: str, word: str, known: Mapping[str, str]) -> str | None:
    """What the word means; None, and a finding, where the release does not know it."""
    if word not in known and not any(each.pointer == f"/--{name}" for each in flags.findings):
        flags.refuse(name, f"'{word[:40]}' is not known", f"write one of {', '.join(known)}")
    return known.get(word)
