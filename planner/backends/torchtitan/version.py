"""The releases of torchtitan that files can be written for."""

from __future__ import annotations

TORCHTITAN_VERSION = "0.3.0"
"""The default: a plan is a Python module that builds the trainer's configuration."""
TOML_VERSION = "0.2.2"
"""The last release that reads TOML."""
VERSIONS: tuple[str, ...] = (TORCHTITAN_VERSION, TOML_VERSION)
