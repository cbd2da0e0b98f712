"""The fields of a section in each release, dumped from torchtitan's dataclasses.

0.3.0: ``ParallelismConfig``, ``TrainingConfig``, ``CompileConfig`` of config/configs.py.  0.2.2: the sections of
config/job_config.py that a plan or its owner may set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from profiles.shipped_tables import shipped_table


def known_fields(release: str) -> dict[str, frozenset[str]]:
    """Section -> fields of one release (``fields.toml``)."""
    sections = shipped_table("planner.backends.torchtitan", "fields.toml")[release]
    return {name: frozenset(words.split()) for name, words in sections.items()}


def unknown_fields(sections: Mapping[str, Mapping[str, Any]], version: str) -> tuple[str, ...]:
    """``section.field`` of everything that the release does not have (it would refuse the file)."""
    table = known_fields(version)
    return tuple(
        f"{name}.{field}" for name, values in sections.items() for field in values if field not in table.get(name, ())
    ) + tuple(f"[{name}]" for name in sections if name not in table)
