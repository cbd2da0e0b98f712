"""Measurements that nobody made, so that the pages have tables with many cells to show: matrix products with holes."""

from __future__ import annotations

import numpy as np

from profiles.device import Device
from profiles.prediction.build_curves import build_curves
from profiles.prediction.collective_curves import collective_curves
from profiles.prediction.profile import CollectiveKey, OperatorTable, Profile, TableOrigin
from profiles.prediction.profile_folder import keep
from profiles.prediction.reference import ProfileReference
from profiles.prediction.roofline import roofline_of

FORMATS = ("bf16", "fp16", "fp8")
SITE_OCTAVES = np.arange(10.0, 15.0, 2.0)
MEASURED_SHARE = {"bf16": 0.9, "fp16": 0.5, "fp8": 0.2}


def made_up_profile(device: Device, seed: int) -> ProfileReference:
    """Matrix products at a random part of the roofline, more of them in bf16 than in fp8; one all_reduce."""
    random = np.random.default_rng(seed)
    tables = {("matmul", dtype, ""): _matmul(device, dtype, random) for dtype in FORMATS}
    sizes = np.exp2(np.arange(10.0, 30.0, 2.0))
    times_s = (1e-5 + sizes / 2e11) * random.uniform(0.8, 1.2, len(sizes))
    curves = collective_curves({CollectiveKey("all_reduce", 8, 1): (sizes, times_s)})
    origins = (TableOrigin(operator="all_reduce", dtype="", num_points=len(sizes)),)
    return keep(Profile(device.name, tables, curves, collective_origins=origins))


def _matmul(device: Device, dtype: str, random: np.random.Generator) -> OperatorTable:
    roof = roofline_of(device, dtype)
    if roof is None:
        raise ValueError(f"{device.name} has no {dtype} peak")
    grid = np.meshgrid(np.exp2(np.arange(4.0, 16.0)), *[np.exp2(SITE_OCTAVES)] * 2, indexing="ij")
    m, n, k = (each.ravel() for each in grid)
    kept = random.uniform(size=len(m)) < MEASURED_SHARE[dtype] * np.clip(np.log2(m) / 9.0, 0.2, 1.0)
    m, n, k = m[kept], n[kept], k[kept]
    best_s = roof.matmul_s(m, n, k)
    curves = build_curves(np.stack([n, k], axis=1), m, best_s, best_s / random.uniform(0.3, 0.8, len(m)))
    return OperatorTable(curves, roof, TableOrigin(operator="matmul", dtype=dtype, num_points=len(m)))
