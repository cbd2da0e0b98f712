"""The profile of a device, built from stored observations.

For each operator and number format one environment is chosen (``environment_choice``), its points become curves
(``build_curves``).  Collectives become one curve a group shape.  Where the device itself has no measurement of an
operator, a sibling of the same architecture lends its utilisation on this device's own roofline (TRANSFER), and bf16
and fp16 stand in for each other.

Accuracy of the transfer on AIConfigurator's tables: H100 to H200, large matmuls 3.4 % median, 10.9 % at the 90th
percentile; two framework versions of one device differ as much.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from profiles.device import Device
from profiles.observation_store.batch import StoredBatch
from profiles.observation_store.query import BATCH_COLUMN, Selection, select
from profiles.observation_store.store import ObservationStore
from profiles.prediction.build_curves import build_curves
from profiles.prediction.curve_kinds import CURVE_KINDS, CurveKind
from profiles.prediction.curve_table import SIGMA_EXACT
from profiles.prediction.environment_choice import CandidatePoints, choose, repeatability
from profiles.prediction.moved_bytes import MOVED_CLASSES, moved_bytes
from profiles.prediction.profile import OperatorTable, Profile, TableOrigin
from profiles.prediction.profile_collectives import collective_tables
from profiles.prediction.roofline import roofline_of

TRACE_FORMATS = frozenset(
    {"kineto", "chakra", "pytorch-execution-trace", "nsys-sqlite", "torch-npu-folder", "msprof-csv"}
)
"""Formats that record a running step: their operators ran as in training."""
SIBLING_SIGMA = 0.08
"""H100 to H200, large matmuls: 10.9 % at the 90th percentile, which is 1.6 sigma."""
TWIN_DTYPE_SIGMA = 0.02
_Words: TypeAlias = tuple[NDArray[np.str_], NDArray[np.int64]]
_TWINS = {"bf16": "fp16", "fp16": "bf16"}
_PHASE_VARIANT = {"forward": "", "unknown": ""}
"""Tables of gradients carry their phase as variant; the forward's is the plain one."""


def build_profile(store: ObservationStore, device: Device, siblings: Sequence[Device] = ()) -> Profile:
    """The profile of ``device``; empty where nothing was measured.  ``siblings``: devices of the same architecture."""
    profile = Profile(device.name)
    batches = {batch.batch_id: batch for batch in store.batches()}
    measured = {batch.environment.device for batch in batches.values()}
    sources = [
        (each, 0.0 if each is device else SIBLING_SIGMA) for each in (device, *siblings) if each.name in measured
    ]
    for kind in CURVE_KINDS:
        for each, extra_sigma in sources:
            _add_tables(profile, device, each, kind, _candidates(store, batches, each.name, kind), extra_sigma)
    _add_moved(profile, store, device)
    _add_twins(profile, device)
    profile.collectives, profile.collective_origins = collective_tables(store, device.name)
    return profile


def _add_tables(
    profile: Profile,
    device: Device,
    measured_on: Device,
    kind: CurveKind,
    measured: Mapping[tuple[str, str], list[CandidatePoints]],
    extra_sigma: float,
) -> None:
    """Add the tables of one operator that the profile does not have yet."""
    for (dtype, variant), candidates in measured.items():
        key = (kind.operator, dtype, variant)
        own, theirs = roofline_of(device, dtype), roofline_of(measured_on, dtype)
        if key in profile.operators or own is None or theirs is None:
            continue
        chosen = choose(candidates)
        size = dict(zip(kind.columns, chosen.shapes.T, strict=True))
        sites = np.stack([size[name] for name in kind.sites], axis=1)
        curves = build_curves(
            sites,
            size[kind.axis],
            kind.roofline_s(theirs, size),
            chosen.time_s,
            sigma_exact=repeatability(chosen, candidates, SIGMA_EXACT),
        )
        origin = TableOrigin(
            operator=kind.operator,
            dtype=dtype,
            variant=variant,
            device=measured_on.name,
            environment=chosen.environment,
            format=chosen.format,
            batch_ids=(chosen.batch_id,),
            num_points=int(curves.measured.sum()),
            transferred_from=measured_on.name if measured_on.name != device.name else "",
            extra_sigma=extra_sigma,
            inside_step=chosen.format in TRACE_FORMATS,
        )
        profile.operators[key] = OperatorTable(curves, own, origin)


def _candidates(
    store: ObservationStore, batches: Mapping[str, StoredBatch], device: str, kind: CurveKind
) -> dict[tuple[str, str], list[CandidatePoints]]:
    """Points by (dtype, variant) and environment; only whole, causal, unwindowed operators, one product at a time."""
    single = () if "batch_size" in kind.columns else ("batch_size",)
    columns = (*kind.columns, *single, "dtype", "phase", "time_s", "detail", "causal", "window", BATCH_COLUMN)
    wanted = Selection(devices=(device,), operator=(kind.operator,), successes_only=True)
    table = select(store, "operators", wanted, columns)
    if not table.num_rows:
        return {}
    numeric = (*kind.columns, *single, "time_s", "window")
    data = {name: table.column(name).to_numpy(zero_copy_only=False).astype(np.float64) for name in numeric}
    coded = {name: _coded(table.column(name)) for name in ("phase", "detail", "dtype", BATCH_COLUMN)}
    usable = coded["phase"].map(lambda phase: phase in kind.phases).astype(bool)
    for name in single:
        usable &= np.nan_to_num(data[name], nan=1.0) == 1
    for name in (*kind.columns, "time_s"):
        usable &= ~np.isnan(data[name])
    usable &= np.nan_to_num(data["window"]) == 0
    if kind.operator == "attention":
        usable &= np.array([value is not False for value in table.column("causal").to_pylist()])
    usable &= coded["detail"].map(_is_plain).astype(bool)
    found: dict[tuple[str, str], list[CandidatePoints]] = {}
    for (batch_id, kernel, dtype, variant), rows in _groups(coded, data, usable, kind):
        batch = batches[batch_id]
        environment = batch.environment
        described = (environment.framework, environment.framework_version, kernel, environment.runtime_version)
        points = CandidatePoints(
            operator=kind.operator,
            batch_id=batch_id,
            kind=batch.source.kind,
            format=batch.source.format,
            environment=" ".join(part for part in described if part),
            version=environment.framework_version,
            kernel=f"{environment.framework} {kernel}" if environment.framework in ("torch", "pytorch") else kernel,
            shapes=np.stack([data[name][rows] for name in kind.columns], axis=1),
            time_s=data["time_s"][rows],
        )
        found.setdefault((dtype, variant), []).append(points)
    return found


@dataclass(frozen=True, slots=True)
class _Coded:
    """A column of text: its distinct values, and the place of each row's among them."""

    values: list[str | None]
    index: NDArray[np.int64]

    def map(self, word: Callable[[str | None], object]) -> NDArray[Any]:
        """``word`` of each row's value."""
        return np.array([word(value) for value in self.values])[self.index]

    def words(self, rows: NDArray[np.int64], word: Callable[[str | None], str]) -> _Words:
        """The distinct words of some rows' values in ascending order, and the place of each row's among them."""
        words, place = np.unique(np.array([word(value) for value in self.values]), return_inverse=True)
        return words, place[self.index[rows]]


def _coded(column: Any) -> _Coded:
    """Of a text column of Arrow."""
    encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return _Coded(encoded.dictionary.to_pylist(), encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64))


def _detail(text: str | None) -> dict[str, Any]:
    parts: dict[str, Any] = json.loads(text) if text else {}
    return parts


def _kernel(text: str | None) -> str:
    """The kernel that a row's detail names."""
    parts = _detail(text)
    return str(parts.get("kernel_source") or parts.get("kernel") or "")


def _is_plain(text: str | None) -> bool:
    """Whether a row's detail is that of the plain operator (no cache of another format, no routing skew)."""
    parts = _detail(text)
    cache = str(parts.get("kv_cache_dtype") or "bfloat16")
    return cache in ("bfloat16", "float16", "half", "auto") and parts.get("routing", "balanced") == "balanced"


def _groups(
    coded: Mapping[str, _Coded], data: Mapping[str, NDArray[np.float64]], usable: NDArray[np.bool_], kind: CurveKind
) -> Iterable[tuple[tuple[str, str, str, str], NDArray[np.int64]]]:
    """Rows by (batch, kernel, dtype, variant)."""
    rows = np.flatnonzero(usable)
    if not len(rows):
        return
    columns = [
        coded[BATCH_COLUMN].words(rows, str),
        coded["detail"].words(rows, _kernel),
        coded["dtype"].words(rows, str),
        _variants(coded, data, rows, kind),
    ]
    codes = np.zeros(len(rows), dtype=np.int64)
    for words, place in columns:
        codes = codes * len(words) + place
    # NumPy sorts small integers by their digits, many times as fast as large ones.
    order = np.argsort(codes.astype(np.min_scalar_type(codes.max())), kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        batch, kernel, dtype, variant = (str(words[place[part[0]]]) for words, place in columns)
        yield (batch, kernel, dtype, variant), rows[part]


def _variants(
    coded: Mapping[str, _Coded], data: Mapping[str, NDArray[np.float64]], rows: NDArray[np.int64], kind: CurveKind
) -> _Words:
    if kind.variant == "phase":
        return coded["phase"].words(rows, lambda phase: _PHASE_VARIANT.get(str(phase), str(phase)))
    if not kind.variant:
        return np.array([""]), np.zeros(len(rows), dtype=np.int64)
    sizes, index = np.unique(data[kind.variant][rows].astype(np.int64), return_inverse=True)
    words, place = np.unique(sizes.astype(str), return_inverse=True)
    return words, place[index]


def _add_moved(profile: Profile, store: ObservationStore, device: Device) -> None:
    """Memory-bound classes: one curve over the bytes that an operator moves."""
    wanted = Selection(devices=(device.name,), operator=MOVED_CLASSES, successes_only=True)
    sizes = ("num_tokens", "hidden_size", "ffn_hidden_size", "vocab_size")
    columns = ("operator", "name", "dtype", "phase", *sizes, "time_s", BATCH_COLUMN)
    table = select(store, "operators", wanted, columns)
    points: dict[tuple[str, str], list[tuple[str, float, float]]] = {}
    for row in table.to_pylist():
        moved = moved_bytes(row["operator"], row["name"], row["dtype"], row)
        if moved and row["phase"] == "forward":
            key = (row["operator"], row["dtype"])
            points.setdefault(key, []).append((row[BATCH_COLUMN], float(moved), row["time_s"]))
    for (operator, dtype), rows in points.items():
        roof = roofline_of(device, dtype)
        if roof is None:
            continue
        volumes, seconds = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
        curves = build_curves(np.ones((len(rows), 1)), volumes, roof.moved_s(volumes), seconds)
        origin = TableOrigin(
            operator=operator,
            dtype=dtype,
            device=device.name,
            batch_ids=tuple(sorted({row[0] for row in rows})),
            num_points=int(curves.measured.sum()),
        )
        profile.operators[operator, dtype, ""] = OperatorTable(curves, roof, origin)


def _add_twins(profile: Profile, device: Device) -> None:
    """bf16 and fp16 run at the same rate: one stands in for the other where only one was measured."""
    for (operator, dtype, variant), table in list(profile.operators.items()):
        twin = _TWINS.get(dtype)
        roof = roofline_of(device, twin) if twin else None
        if twin is None or roof is None or (operator, twin, variant) in profile.operators:
            continue
        extra = float(np.hypot(table.origin.extra_sigma, TWIN_DTYPE_SIGMA))
        origin = table.origin.model_copy(
            update={
                "dtype": twin,
                "transferred_from": table.origin.transferred_from or dtype,
                "extra_sigma": extra,
                "num_points": 0,
            }
        )
        profile.operators[operator, twin, variant] = OperatorTable(table.curves, roof, origin)
