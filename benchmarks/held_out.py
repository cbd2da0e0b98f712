"""The error of predictions for points held out of measured tables, by table.

``sites``: whole (n, k) of a matmul, or whole (batch, heads, key/value heads) of an attention, held out five-fold.
``shapes``: a tenth of the points, at random.  ``sizes``: every second size of a collective's curve (a x4 grid stays).
The random choices are seeded; nothing is fitted to what is reported, except where ``part`` says ``calibration``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from profiles.catalogue import load_device
from profiles.errors import DocumentInvalid
from profiles.importers.aiconfigurator import FORMAT
from profiles.importers.aiconfigurator.installed import table_files
from profiles.importing.format import ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.source_file import SourceFile
from profiles.prediction.build_curves import build_curves
from profiles.prediction.collective_curves import collective_curves
from profiles.prediction.roofline import roofline_of

Array = NDArray[np.float64]
Kind = Literal["matmul", "attention", "collectives"]

FOLDS = 5
Z80 = 1.2816
FEWEST_POINTS = 2000
CALIBRATION_SYSTEMS = ("a100_sxm", "b200_sxm")
"""Systems on which the one fitted constant of the collective curves was chosen; all others only judge it."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Errors of one table under one way of holding out: relative errors and whether the 80 % interval held."""

    kind: Kind
    way: str
    system: str
    table: str
    errors: Array
    inside: NDArray[np.bool_]

    @property
    def part(self) -> str:
        """Whether this table helped to choose a constant."""
        chosen = self.kind == "collectives" and self.system in CALIBRATION_SYSTEMS
        return "calibration" if chosen else "report"

    def as_data(self) -> dict[str, Any]:
        """Figures of one line."""
        return {
            "kind": self.kind,
            "way": self.way,
            "system": self.system,
            "table": self.table,
            "part": self.part,
            "n": len(self.errors),
            "median": float(np.median(self.errors)),
            "p90": float(np.quantile(self.errors, 0.9)),
            "coverage": float(self.inside.mean()),
        }


def held_out_of(system: str) -> Iterator[HeldOut]:
    """Every bf16 matmul and plain attention table, and all NCCL curves, of one installed system."""
    for file, imported in read_installed(system):
        for batch in imported.batches:
            name = " ".join(file.path.parts[-3:-1])
            device = load_device(batch.environment.device) if batch.environment.device else None
            if batch.operator_table is not None and device is not None:
                roof = roofline_of(device, "bf16")
                operator = batch.operator_table.column("operator")[0].as_py()
                if roof is None or operator not in ("matmul", "attention"):
                    continue
                for points in _operator_points(batch.operator_table, operator, roof):
                    yield from _operators(operator, system, name, points)
            elif batch.collective_table is not None and file.name.startswith("nccl"):
                yield _collectives(batch.collective_table, system, name)


def read_installed(system: str) -> Iterator[tuple[SourceFile, Imported]]:
    """Every installed table of one system that has usable rows."""
    for path in table_files(system):
        file = SourceFile(path)
        try:
            yield file, FORMAT.read([file], ReadOptions())
        except DocumentInvalid:
            # Only rows timed in eager mode: the import leaves them out as well.
            continue


@dataclass(frozen=True, slots=True)
class _Points:
    sites: Array
    axis: Array
    roofline_s: Array
    time_s: Array

    def take(self, chosen: NDArray[np.bool_]) -> _Points:
        return _Points(self.sites[chosen], self.axis[chosen], self.roofline_s[chosen], self.time_s[chosen])


def _operator_points(table: pa.Table, operator: str, roof: Any) -> Iterator[_Points]:
    """bf16 points; attention: causal, no window, cache in the same format, one head size at a time."""
    keep = np.array([dtype == "bf16" for dtype in table.column("dtype").to_pylist()])
    if operator == "matmul":
        m, n, k = (_numbers(table, name) for name in ("m", "n", "k"))
        points = _Points(np.stack([n, k], axis=1), m, roof.matmul_s(m, n, k), _numbers(table, "time_s")).take(keep)
        if len(points.axis) >= FEWEST_POINTS:
            yield points
        return
    if "num_kv_heads" not in table.column_names or not table.column("causal")[0].as_py():
        return
    if "window" in table.column_names:
        keep &= np.nan_to_num(_numbers(table, "window")) == 0
    keep &= np.array(['"kv_cache_dtype": "fp8"' not in text for text in table.column("detail").to_pylist()])
    batch, query, heads, groups, head_dim = (
        _numbers(table, name) for name in ("batch_size", "query_length", "num_heads", "num_kv_heads", "head_dim")
    )
    roofline_s = roof.attention_s(batch, query, heads, groups, head_dim)
    points = _Points(np.stack([batch, heads, groups], axis=1), query, roofline_s, _numbers(table, "time_s"))
    # Different kernels at one shape are different operators: a table is of one kernel.
    kernels = np.array([json.loads(text).get("kernel_source", "") for text in table.column("detail").to_pylist()])
    for kernel, size in sorted(
        {(str(name), float(dim)) for name, dim in zip(kernels[keep], head_dim[keep], strict=True)}
    ):
        chosen = keep & (head_dim == size) & (kernels == kernel)
        if chosen.sum() >= FEWEST_POINTS:
            yield points.take(chosen)


def _operators(operator: Kind, system: str, table: str, points: _Points) -> Iterator[HeldOut]:
    random = np.random.default_rng(0)
    _, site = np.unique(points.sites, axis=0, return_inverse=True)
    fold = random.integers(0, FOLDS, site.max() + 1)[site.reshape(-1)]
    for way, masks in (
        ("sites", [fold == each for each in range(FOLDS)]),
        ("shapes", [random.random(len(points.axis)) < 0.1]),
    ):
        errors, inside = [], []
        for out in masks:
            seen, asked = points.take(~out), points.take(out)
            curves = build_curves(seen.sites, seen.axis, seen.roofline_s, seen.time_s)
            value, sigma, rung = curves.predict(asked.axis, asked.sites)
            log_error = value - np.log(asked.roofline_s / asked.time_s)
            # A refusal is no prediction; the tables leave none in practice, and they are counted by n.
            said = rung < 6
            errors.append(np.abs(np.exp(-log_error[said]) - 1.0))
            inside.append(np.abs(log_error[said]) <= Z80 * sigma[said])
        yield HeldOut(operator, way, system, table, np.concatenate(errors), np.concatenate(inside))


def _collectives(table: pa.Table, system: str, name: str) -> HeldOut:
    """A x4 grid of every curve predicts the sizes between."""
    columns = [table.column(each).to_pylist() for each in ("operation", "group_size", "dtype", "size_bytes", "time_s")]
    series: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
    for operation, group, dtype, size, time_s in zip(*columns, strict=True):
        series.setdefault((operation, group, dtype), []).append((float(size), time_s))
    curves = {key: np.array(sorted(pairs)).T for key, pairs in series.items()}
    kept = {key: (np.arange(pairs.shape[1]) % 2 == 0) for key, pairs in curves.items()}
    for mask in kept.values():
        mask[-1] = True
    fitted = collective_curves({key: (pairs[0][kept[key]], pairs[1][kept[key]]) for key, pairs in curves.items()})
    errors, inside = [], []
    for key, (sizes, times_s) in curves.items():
        out = ~kept[key]
        found = fitted[key].predict(sizes[out])
        errors.append(np.abs(found.time_s / times_s[out] - 1.0))
        inside.append(np.abs(np.log(found.time_s / times_s[out])) <= Z80 * found.sigma)
    return HeldOut("collectives", "sizes", system, name, np.concatenate(errors), np.concatenate(inside))


def _numbers(table: pa.Table, name: str) -> Array:
    numbers: Array = table.column(name).to_numpy().astype(np.float64)
    return numbers
