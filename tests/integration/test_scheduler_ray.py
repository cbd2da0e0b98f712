"""The Ray example on a real Ray cluster of two nodes of this machine, against a real service."""

from __future__ import annotations
