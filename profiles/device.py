"""The device document: peak rates and memory of one accelerator, and where each number comes from."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from profiles.document import Document

Vendor = Literal["NVIDIA", "AMD", "Intel", "Google", "AWS", "Huawei", "other"]
Confidence = Literal["A", "B", "C", "D", "measured"]


class Provenance(Document):
    """Where a number comes from: ``A`` vendor page, ``B`` project constant, ``C`` third party, ``D`` unverified."""

    confidence: Confidence
    source: str = Field(min_length=1)
    note: str = ""


class Device(Document):
    """One planner rank: what ``torch`` sees as a device (a GCD, a die, a chip)."""

    schema_version: Literal[1] = 1
    name: str = Field(min_length=1)
    vendor: Vendor
    architecture: str = Field(description="hopper, blackwell, ampere, cdna3, ascend910b, tpu_v5p, trainium2, ...")
    memory_bytes: int = Field(gt=0, description="bytes the driver reports as total")
    memory_bandwidth_bytes_per_s: float = Field(gt=0)
    peak_flops_per_s: dict[str, float] = Field(description="dense peak by dtype: bf16, fp16, fp8, fp4, tf32, fp32")
    achievable_matmul_fraction: dict[str, float] = Field(
        default_factory=dict, description="best measured matmul rate over peak, by dtype; empty = not measured"
    )
    num_compute_units: int | None = Field(default=None, gt=0, description="SMs, CUs, AI cores")
    provenance: dict[str, Provenance] = Field(
        default_factory=dict, description="by field name; key 'default' covers the rest"
    )
