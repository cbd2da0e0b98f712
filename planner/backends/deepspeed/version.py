"""The DeepSpeed release that the files are for."""

from __future__ import annotations

DEEPSPEED_VERSION = "0.19.8"
