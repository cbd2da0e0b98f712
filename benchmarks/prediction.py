"""Accuracy and speed of a lookup in measured tables: AIConfigurator's tables, points held out."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.held_out import HeldOut, held_out_of, read_installed
from benchmarks.measurement import Measurement, Spec
from profiles.catalogue import load_device
from profiles.errors import MeshwrightError
from profiles.importers.aiconfigurator.installed import systems
from profiles.prediction.build_curves import build_curves
from profiles.prediction.profile import OperatorTable, Profile, TableOrigin
from profiles.prediction.roofline import roofline_of

LOOKUPS = 100_000
LOOKUP_TARGET_S = 0.050
LOOKUP_SYSTEM = "h100_sxm"
TARGETS = {"matmul": (0.05, 0.15), "attention": (0.03, 0.10), "collectives": (0.025, 0.12)}
LEAST_COVERAGE, MOST_COVERAGE = 0.75, 0.85


def prediction(repeats: int) -> list[Measurement]:
    """Median, 90th percentile and coverage of held-out points of all systems.  Deterministic: measured once."""
    del repeats
    try:
        found = [each for system in systems() for each in held_out_of(system)]
    except MeshwrightError as error:
        raise RuntimeError(str(error)) from None
    lines: list[Measurement] = []
    for kind, way in (("matmul", "sites"), ("matmul", "shapes"), ("attention", "sites"), ("attention", "shapes")):
        lines += _lines(kind, way, [each for each in found if (each.kind, each.way) == (kind, way)])
    return lines + _lines("collectives", "sizes", [each for each in found if each.kind == "collectives"])


def _lines(kind: str, way: str, found: list[HeldOut]) -> list[Measurement]:
    """Over the tables that helped to choose nothing; all tables are in the details."""
    judged = [each for each in found if each.part == "report"]
    errors = np.concatenate([each.errors for each in judged])
    inside = np.concatenate([each.inside for each in judged])
    middle, tail = TARGETS[kind]
    details: dict[str, Any] = {"tables": [each.as_data() for each in found], "n": len(errors)}
    name, what = f"prediction-{kind}-{way}", f"{kind}, unseen {way}, {len(judged)} tables"
    return [
        Measurement(name, f"{what}: median error", "fraction", middle, (float(np.median(errors)),), details=details),
        Measurement(f"{name}.p90", f"{what}: 90th percentile", "fraction", tail, (float(np.quantile(errors, 0.9)),)),
        Measurement(
            f"{name}.coverage",
            f"{what}: 80 % interval holds (75 to 85 % wanted)",
            "fraction",
            LEAST_COVERAGE,
            (float(inside.mean()),),
            larger_is_better=True,
        ),
    ]


def lookup(repeats: int) -> list[Measurement]:
    """100,000 matmul times at random shapes, most of them unseen sites; the table is warm."""
    try:
        profile = _profile()
    except MeshwrightError as error:
        raise RuntimeError(str(error)) from None
    random = np.random.default_rng(0)
    m = np.floor(2.0 ** (random.random(LOOKUPS) * 15))
    n, k = (64.0 * np.floor(1 + random.random((2, LOOKUPS)) ** 2 * 64)) * 2.0
    profile.matmul(m, n, k, "bf16")
    wall_s, cpu_s = [], []
    for _ in range(max(repeats, 5)):
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        profile.matmul(m, n, k, "bf16")
        wall_s.append(time.perf_counter() - start_s)
        cpu_s.append(time.process_time() - start_cpu_s)
    sites = len(np.unique(np.stack([n, k]), axis=1).T)
    task = f"{LOOKUPS:,} matmul times at {sites:,} (n, k), warm"
    return [Measurement("lookup", task, "s", LOOKUP_TARGET_S, tuple(wall_s), tuple(cpu_s))]


def _profile() -> Profile:
    """One matmul table of the system, straight from the package."""
    for _, imported in read_installed(LOOKUP_SYSTEM):
        table = imported.batches[0].operator_table
        if table is None or table.column("operator")[0].as_py() != "matmul":
            continue
        keep = np.array([dtype == "bf16" for dtype in table.column("dtype").to_pylist()])
        m, n, k, time_s = (table.column(name).to_numpy().astype(np.float64)[keep] for name in ("m", "n", "k", "time_s"))
        device = load_device(imported.batches[0].environment.device)
        roof = roofline_of(device, "bf16")
        if roof is not None:
            curves = build_curves(np.stack([n, k], axis=1), m, roof.matmul_s(m, n, k), time_s)
            origin = TableOrigin(operator="matmul", dtype="bf16")
            return Profile(device.name, {("matmul", "bf16", ""): OperatorTable(curves, roof, origin)})
    raise RuntimeError(f"no matmul table of {LOOKUP_SYSTEM}")


LOOKUP = Spec("lookup", lookup)
PREDICTION = Spec("prediction", prediction)
