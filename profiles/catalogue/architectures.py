"""Rates of an architecture that no data sheet of a device states: ``architectures.yaml``, with the source of each."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from profiles.catalogue.kept_yaml import load_catalogue_file
from profiles.device import Provenance
from profiles.document import Document
from profiles.validation import read_document

FILE = Path(__file__).parent / "architectures.yaml"


class Rates(Document):
    """One quantity by architecture (or kind); ``other``: of those that are not listed, None = unknown."""

    provenance: Provenance
    values: dict[str, float]
    other: float | None = None


class FusedAttentionRates(Document):
    """One fused kernel on one architecture."""

    forward_fraction: float = Field(gt=0, le=1, description="best rate over the dense 16-bit peak")
    backward_fraction: float = Field(gt=0, le=1)
    forward_half: float = Field(gt=0, description="tokens of a row at half of the best rate, at an H100's peak")
    backward_half: float = Field(gt=0)
    narrow_head: float = Field(gt=0, le=1, description="rate at 64 wide heads over that at 128")


class FusedAttention(Document):
    """Kernel -> architecture -> rates."""

    provenance: Provenance
    kernels: dict[str, dict[str, FusedAttentionRates]]
    other: FusedAttentionRates


class Architectures(Document):
    """The whole file."""

    schema_version: Literal[1] = 1
    sustained_matmul_fraction: Rates
    systolic_matmul_fraction: Rates
    fp8_over_bf16_matmul_fraction: Rates
    device_speed_spread: Rates
    fused_attention: FusedAttention
    nvlink_bytes_per_s: Rates
    xgmi_bytes_per_s: Rates
    scale_up_latency_s: Rates


@cache
def architectures() -> Architectures:
    """The data, read once a process."""
    return read_document(Architectures, load_catalogue_file(FILE), str(FILE))
