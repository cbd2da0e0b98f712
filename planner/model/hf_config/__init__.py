"""Read Hugging Face ``config.json`` files: one file a family, one importer a ``model_type``."""

from __future__ import annotations

from planner.model.hf_config.registry import model_from_hf_config, supported_model_types

__all__ = ["model_from_hf_config", "supported_model_types"]
