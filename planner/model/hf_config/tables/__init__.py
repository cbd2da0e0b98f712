"""The families that are read by a table: ``model_type`` -> ``Decoder``, a few a file."""

from __future__ import annotations

from planner.model.hf_config.decoder import Decoder
from planner.model.hf_config.tables.dense import DENSE
from planner.model.hf_config.tables.experts import ROUTED
from planner.model.hf_config.tables.gated import GATED
from planner.model.hf_config.tables.gpt import GPT
from planner.model.hf_config.tables.hybrids import HYBRIDS
from planner.model.hf_config.tables.recurrent import RECURRENT
from planner.model.hf_config.tables.shared import SHARED
from planner.model.hf_config.tables.sparse import SPARSE

TABLES: dict[str, Decoder] = DENSE | ROUTED | GPT | HYBRIDS | GATED | SPARSE | SHARED | RECURRENT

__all__ = ["TABLES"]
