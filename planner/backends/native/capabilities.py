"""What the trainer can do, for code that must not import torch; tests hold these names against the trainer."""

from __future__ import annotations

TORCH_VERSION = "2.13.0"
"""The release that the trainer is tested with and that the rules quote."""

ACTIVATION_NAMES: frozenset[str] = frozenset(
    {"silu", "swish", "gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "quick_gelu", "relu"}
)

RECOMPUTE_MODULES: frozenset[str] = frozenset({"attention_core", "norm", "activation", "mlp", "moe"})
"""Selective modules that free here what the planner says they free."""
