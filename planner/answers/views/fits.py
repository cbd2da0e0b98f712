"""The fits of a device: what is measured, how well they say it, and what is missing for training plans."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from planner.predict.coverage.training_gaps import training_gaps
from profiles.document import Document
from profiles.prediction.curve_table import Z80
from profiles.prediction.fit_summary import (
    CollectiveFit,
    TableFit,
    axis_name,
    bus_bandwidths_bytes_per_s,
    collective_fits,
    table_fits,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from profiles.device import Device
    from profiles.prediction.collective_curves import CollectiveCurve
    from profiles.prediction.profile import OperatorTable, Profile
    from profiles.prediction.residuals import ResidualSummary


MOST_POINTS = 64
"""Points of a curve that a picture can show; logs have 10 to 40."""
DIGITS = 4
"""Of the points: measurements repeat to 1 %, and seventeen digits are three times the bytes."""


class Spread(Document):
    """Standard deviation of the log of the time, by how a number was found; null where it cannot be."""

    exact: float = Field(description="at a measured size")
    bracket: float = Field(description="between measured sizes, typical")
    unseen_site: float | None = Field(description="at an unseen site, typical; null = one site only")
    transfer: float = Field(description="what a transfer from another device adds")


class Residual(Document):
    """How far measured points are from what is predicted without them, as fractions of the measured time."""

    num_points: int
    median: float
    p90: float
    coverage: float = Field(description="part of the points inside their stated 80 % interval")


class LeftOut(Document):
    """Residuals without the point's site, and without the point alone."""

    site_left_out: Residual | None
    point_left_out: Residual | None


class SizeCell(Document):
    """How much is measured of one table between two sizes of its axis."""

    octave: int = Field(description="sizes from 2^octave up to 2^(octave + 1)")
    measured: int = Field(description="measured points")
    filled_in: int = Field(description="points of the same grid that are not measured")


class TableFitView(Document):
    """One table of an operator."""

    operator: str
    dtype: str
    variant: str
    environment: str
    format: str
    measured_on: str
    transferred_from: str
    batch_ids: tuple[str, ...]
    num_points: int
    num_sites: int
    num_axis_sizes: int
    measured_share: float
    sizes: dict[str, tuple[float, float]] = Field(description="smallest and largest of each size, the axis first")
    axis: str
    by_size: tuple[SizeCell, ...]
    sigma: Spread
    residuals: LeftOut


class CurveSpread(Document):
    """Standard deviation of the log of the time of a curve."""

    exact: float
    between: float
    factor_80: float = Field(
        description="80 % interval between measured sizes: the time divided and multiplied by this"
    )


class CurvePoints(Document):
    """Measured points of a curve, smallest size first; four significant digits."""

    sizes_bytes: tuple[float, ...] = Field(description=f"at most {MOST_POINTS} sizes, spread evenly over all measured")
    times_s: tuple[float, ...] = Field(description="median of each size, evened out so that none falls as sizes grow")
    bus_bandwidths_bytes_per_s: tuple[float, ...] = Field(description="the same times as bus bandwidth")


class CollectiveFitView(Document):
    """One curve of a collective of one group shape."""

    operation: str
    group_size: int
    num_nodes: int
    concurrent: bool
    environment: str
    format: str
    batch_ids: tuple[str, ...]
    num_points: int
    num_sizes: int
    smallest_bytes: float
    largest_bytes: float
    latency_s: float
    largest_bus_bandwidth_bytes_per_s: float
    points: CurvePoints
    sigma: CurveSpread


class GapView(Document):
    """Something that is not measured, and the command that measures it."""

    code: str
    what: str
    command: str


class FitsView(Document):
    """Everything that plans look up for a device."""

    device: str
    profile_id: str
    num_points: int
    tables: tuple[TableFitView, ...]
    collectives: tuple[CollectiveFitView, ...]
    missing: tuple[GapView, ...]


def fits_view(profile: Profile, device: Device) -> FitsView:
    """The fits of a profile, sorted by operator and by operation."""
    return FitsView(
        device=device.name,
        profile_id=profile.profile_id,
        num_points=profile.num_points,
        tables=tuple(_table(fit, _table_of(profile, fit)) for fit in table_fits(profile)),
        collectives=tuple(_collective(fit, profile.collectives[fit.key]) for fit in collective_fits(profile)),
        missing=tuple(GapView(**asdict(gap)) for gap in training_gaps(profile, device)),
    )


def _table_of(profile: Profile, fit: TableFit) -> OperatorTable:
    return profile.operators[fit.origin.operator, fit.origin.dtype, fit.origin.variant]


def _table(fit: TableFit, table: OperatorTable) -> TableFitView:
    origin = fit.origin
    return TableFitView(
        operator=origin.operator,
        dtype=origin.dtype,
        variant=origin.variant,
        environment=origin.environment,
        format=origin.format,
        measured_on=origin.device,
        transferred_from=origin.transferred_from,
        batch_ids=origin.batch_ids,
        num_points=origin.num_points,
        num_sites=fit.num_sites,
        num_axis_sizes=fit.num_axis_sizes,
        measured_share=fit.measured_share,
        sizes=fit.sizes,
        axis=axis_name(origin.operator),
        by_size=_by_size(table),
        sigma=Spread(
            exact=fit.sigma_exact,
            bracket=fit.sigma_bracket,
            unseen_site=fit.sigma_unseen_site,
            transfer=origin.extra_sigma,
        ),
        residuals=LeftOut(
            site_left_out=_residual(fit.site_left_out),
            point_left_out=_residual(fit.point_left_out),
        ),
    )


def _by_size(table: OperatorTable) -> tuple[SizeCell, ...]:
    curves = table.curves
    octaves = np.floor(np.log2(np.maximum(curves.axis, 1.0))).astype(int)
    return tuple(
        SizeCell(
            octave=int(octave),
            measured=int(curves.measured[:, octaves == octave].sum()),
            filled_in=int((~curves.measured[:, octaves == octave]).sum()),
        )
        for octave in np.unique(octaves)
    )


def _collective(fit: CollectiveFit, curve: CollectiveCurve) -> CollectiveFitView:
    return CollectiveFitView(
        **asdict(fit.key),
        environment=fit.origin.environment,
        format=fit.origin.format,
        batch_ids=fit.origin.batch_ids,
        num_points=fit.origin.num_points,
        num_sizes=fit.num_sizes,
        smallest_bytes=fit.smallest_bytes,
        largest_bytes=fit.largest_bytes,
        latency_s=fit.latency_s,
        largest_bus_bandwidth_bytes_per_s=fit.largest_bus_bandwidth_bytes_per_s,
        points=_points(fit, curve),
        sigma=CurveSpread(
            exact=fit.sigma_exact, between=fit.sigma_between, factor_80=math.exp(Z80 * fit.sigma_between)
        ),
    )


def _points(fit: CollectiveFit, curve: CollectiveCurve) -> CurvePoints:
    bandwidths = bus_bandwidths_bytes_per_s(fit.key, curve)
    kept = _spread_places(len(curve.sizes), int(bandwidths.argmax()))
    return CurvePoints(
        sizes_bytes=tuple(float(size) for size in curve.sizes[kept]),
        times_s=_rounded(curve.times_s[kept]),
        bus_bandwidths_bytes_per_s=_rounded(bandwidths[kept]),
    )


def _spread_places(count: int, fastest: int) -> NDArray[np.int64]:
    """Places of at most MOST_POINTS of ``count`` points: both ends, the fastest, and evenly between them."""
    if count <= MOST_POINTS:
        return np.arange(count)
    even = np.linspace(0, count - 1, MOST_POINTS - 1).round().astype(np.int64)
    return np.union1d(even, [fastest])


def _rounded(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(float(f"{value:.{DIGITS}g}") for value in values)


def _residual(summary: ResidualSummary | None) -> Residual | None:
    if summary is None or not all(map(math.isfinite, (summary.median, summary.p90, summary.coverage))):
        return None
    return Residual(**asdict(summary))
