"""Read ``transformer/config.json`` of diffusers pipelines: a table of classes, by how their layers use the text."""

from __future__ import annotations

from planner.model.diffusers_config.reading import DENOISERS, is_diffusers_config, model_from_diffusers_config

__all__ = ["DENOISERS", "is_diffusers_config", "model_from_diffusers_config"]
