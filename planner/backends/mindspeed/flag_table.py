"""The flags that each release knows: the allow-list that every emitted flag is checked against.

``core_v0.12.1`` is the tag of Megatron-LM that MindSpeed's branch ``core_r0.12.1`` patches.  A release here means:

- Megatron-LM at that tag (``megatron/training/arguments.py``; its dataclasses are those of megatron-core 0.12.1),
- MindSpeed, branch ``core_r0.12.1`` from 028de58c (July 2026) on: ``--pipeline-model-parallel-layout`` and
  ``--optimizer muon`` were back-ported then.  MindSpeed's own main branch patches Megatron 0.18 and drops features.

The lists hold what plans can touch, not everything that the parsers know.  A value is where the flag is registered.

What they were compared with: those of Megatron-LM with NVIDIA's ``megatron/training/arguments.py`` at the tag
(NVIDIA/Megatron-LM a845aa7e); those of MindSpeed with its feature files: the layout at imhmhm/MindSpeed-LLM f97d07ec
(the stored copy of Ascend/MindSpeed at 1f5feb86 leaves the flag to a later Megatron), the others at Ascend/MindSpeed or
that repository.
The value ``ulysses_cp_algo`` of ``--context-parallel-algo`` was read in documentation only
(docs/en/features/ulysses-context-parallel.md at 7af9baed): no stored feature file registers it.

MindSpeed-LLM registers some of these flags again with another meaning (``--moe-layer-freq`` takes a number there,
latent attention has names of its own), so the files are for Megatron-LM + MindSpeed, not for MindSpeed-LLM's scripts.
"""

from __future__ import annotations

from profiles.shipped_tables import shipped_table

CORE_VERSION = "core_v0.12.1"
_FILE = ("planner.backends.mindspeed", "flag_table.toml")


def megatron_flags(version: str) -> dict[str, str]:
    """Flag of Megatron-LM -> where it is registered."""
    names = shipped_table(*_FILE)[version]["megatron"].split()
    return dict.fromkeys(names, f"Megatron-LM {version} megatron/training/arguments.py")


def mindspeed_flags(version: str) -> dict[str, str]:
    """Flag that MindSpeed adds -> where it is registered."""
    branch = version.replace("core_v", "core_r")
    features: dict[str, str] = shipped_table(*_FILE)[version]["mindspeed"]
    return {flag: f"MindSpeed {branch} features_manager/{path}" for flag, path in features.items()}


def known_flags(version: str) -> dict[str, str]:
    """Flag -> where it is registered, Megatron's and MindSpeed's together."""
    return megatron_flags(version) | mindspeed_flags(version)
