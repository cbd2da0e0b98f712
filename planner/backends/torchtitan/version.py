"""The releases of torchtitan that files can be written for."""

from __future__ import annotations

TORCHTITAN_VERSION = "0.3.0"
"""The default: a plan is a Python module that builds the trainer's configuration."""
TOML_VERSION = "0.2.2"
"""The last release that reads TOML."""
PIPELINE_TORCH = "2.14"
"""The first torch whose schedules take lists of micro-batches, which 0.3.0 hands to them (trainer.py:856): pytorch pull
request 188500, in torch 2.14.0 distributed/pipelining/schedules.py:906 and not in 2.13.0.  torchtitan names no torch
among its requirements; its README asks for a nightly build."""
VERSIONS: tuple[str, ...] = (TORCHTITAN_VERSION, TOML_VERSION)
