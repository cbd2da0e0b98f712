"""The summary of a profile, a few lines a table: sizes, spread of each rung, residuals, curves of groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiles.observations.bandwidth import bus_factor
from profiles.prediction.build_curves import LeftOutCurves
from profiles.prediction.collective_curves import CollectiveCurve
from profiles.prediction.curve_kinds import kind_of
from profiles.prediction.profile import CollectiveKey, OperatorTable, Profile, TableOrigin
from profiles.prediction.residuals import ResidualSummary, left_out_of, point_residuals, site_residuals

MOVED_AXIS = "moved_bytes"


@dataclass(frozen=True, slots=True)
class TableFit:
    """One operator table.  ``sizes``: smallest and largest of each size, the axis first.

    The spreads are standard deviations of the log of the time, without what a transfer adds: at a measured size,
    typical between measured sizes, typical at an unseen site (None where there is one site only).
    """

    origin: TableOrigin
    num_sites: int
    num_axis_sizes: int
    measured_share: float
    sizes: dict[str, tuple[float, float]]
    sigma_exact: float
    sigma_bracket: float
    sigma_unseen_site: float | None
    site_left_out: ResidualSummary | None
    point_left_out: ResidualSummary | None


@dataclass(frozen=True, slots=True)
class CollectiveFit:
    """One curve of collectives; ``latency_s`` is the time of the smallest size."""

    key: CollectiveKey
    origin: TableOrigin
    num_sizes: int
    smallest_bytes: float
    largest_bytes: float
    latency_s: float
    largest_bus_bandwidth_bytes_per_s: float
    sigma_exact: float
    sigma_between: float


def site_names(operator: str) -> tuple[str, ...]:
    """Names of the sizes that make a site, in the order of the table's columns; () for memory-bound classes."""
    kind = kind_of(operator)
    return kind.sites if kind else ()


def axis_name(operator: str) -> str:
    """Name of the size that the curves run over."""
    kind = kind_of(operator)
    return kind.axis if kind else MOVED_AXIS


def table_fits(profile: Profile) -> list[TableFit]:
    """Every operator table, sorted by operator, number format and variant.

    A transferred table has no residuals of its own: they are those of the table that it is transferred from.
    """
    return [_table_fit(profile.operators[key]) for key in sorted(profile.operators, key=natural_order)]


def collective_fits(profile: Profile) -> list[CollectiveFit]:
    """Every curve of collectives, sorted by operation, nodes and group size."""
    keys = sorted(profile.collectives)
    found = [
        _collective_fit(key, profile.collectives[key], origin)
        for key, origin in zip(keys, profile.collective_origins, strict=True)
    ]
    return sorted(found, key=lambda fit: (fit.key.operation, fit.key.num_nodes, fit.key.group_size, fit.key.concurrent))


def bus_bandwidths_bytes_per_s(key: CollectiveKey, curve: CollectiveCurve) -> NDArray[np.float64]:
    """Which bus bandwidth is the time of each measured size?"""
    bandwidths: NDArray[np.float64] = curve.sizes / curve.times_s * bus_factor(key.operation, key.group_size)
    return bandwidths


def natural_order(key: tuple[str, str, str]) -> tuple[str, str, int, str]:
    """Sort key of tables: operator, number format, then head sizes as numbers."""
    operator, dtype, variant = key
    return operator, dtype, int(variant) if variant.isdecimal() else 0, variant


def _table_fit(table: OperatorTable) -> TableFit:
    curves, origin = table.curves, table.origin
    own = not origin.transferred_from
    left_out = left_out_of(table)
    ranges = {axis_name(origin.operator): (float(curves.axis[0]), float(curves.axis[-1]))}
    for name, column in zip(site_names(origin.operator), curves.sites.T, strict=False):
        ranges[name] = (float(column.min()), float(column.max()))
    return TableFit(
        origin=origin,
        num_sites=len(curves.sites),
        num_axis_sizes=len(curves.axis),
        measured_share=float(curves.measured.mean()),
        sizes=ranges,
        sigma_exact=curves.sigma_exact,
        sigma_bracket=float(np.median(np.hypot(curves.sigma_bracket, curves.sigma_exact))),
        sigma_unseen_site=_unseen_sigma(table, left_out),
        site_left_out=site_residuals(table, left_out).summary() if own else None,
        point_left_out=point_residuals(table, left_out).summary() if own else None,
    )


def _unseen_sigma(table: OperatorTable, left_out: LeftOutCurves) -> float | None:
    """Median spread of what the sites say about each other."""
    curves = table.curves
    if len(curves.sites) < 2:
        return None
    typical = np.median(left_out.deviation)
    return float(np.median(np.hypot(curves.sigma_site * typical, curves.sigma_exact)))


def _collective_fit(key: CollectiveKey, curve: CollectiveCurve, origin: TableOrigin) -> CollectiveFit:
    return CollectiveFit(
        key=key,
        origin=origin,
        num_sizes=len(curve.sizes),
        smallest_bytes=float(curve.sizes[0]),
        largest_bytes=float(curve.sizes[-1]),
        latency_s=float(curve.times_s[0]),
        largest_bus_bandwidth_bytes_per_s=float(bus_bandwidths_bytes_per_s(key, curve).max()),
        sigma_exact=curve.sigma_exact,
        sigma_between=curve.sigma_between,
    )
