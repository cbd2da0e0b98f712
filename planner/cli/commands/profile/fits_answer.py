"""How are the fits of a device told?  As data, as tables on the terminal, and as the tables of the page of figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

    from profiles.device import Device
    from profiles.plots.gallery import FigureFile
    from profiles.prediction.fit_summary import CollectiveFit, TableFit
    from profiles.prediction.profile import Profile
    from profiles.prediction.residuals import ResidualSummary

TABLE_COLUMNS = (
    "|operator",
    ">points",
    "sizes",
    ">hit",
    ">between",
    ">unseen",
    ">median off",
    ">p90 off",
    ">in 80 %",
    "from",
)
COLLECTIVE_COLUMNS = (
    "operation",
    "group",
    ">points",
    "sizes",
    ">latency",
    ">bus GB/s",
    ">hit",
    ">between",
    "from",
)
LEGEND = (
    "hit, between, unseen: standard deviation at a measured size, between sizes, at an unseen site (typical). off:"
    " how far measured points are from what is predicted without their site (without the point where there is one"
    " site), and how many of them lie in their stated 80 % interval."
)


def fits_data(profile: Profile, device: Device) -> dict[str, Any]:
    """Everything as plain data."""
    from planner.coverage.training_gaps import training_gaps
    from profiles.prediction.fit_summary import collective_fits, table_fits

    return {
        "device": device.name,
        "profile_id": profile.profile_id,
        "num_points": profile.num_points,
        "tables": [_table_data(fit) for fit in table_fits(profile)],
        "collectives": [_collective_data(fit) for fit in collective_fits(profile)],
        "missing": [asdict(gap) for gap in training_gaps(profile, device)],
        "figures": [],
    }


def fits_tables(data: dict[str, Any]) -> Iterable[RenderableType]:
    """What the terminal shows."""
    from planner.cli.render.tables import bullets, heading, table

    yield _head(data)
    if data["tables"]:
        yield heading("Operators")
        yield table("", TABLE_COLUMNS, table_rows(data))
        yield LEGEND
    if data["collectives"]:
        yield heading("Collectives")
        yield table("", COLLECTIVE_COLUMNS, collective_rows(data))
    if data["missing"]:
        yield heading("Missing for training plans")
        yield bullets([f"{gap['what']}\n{gap['command']}" for gap in data["missing"]])
    if data["figures"]:
        yield heading("Figures")
        count = len(data["figures"]) - 1
        lent = "" if count else " (transferred tables are drawn with the device that they come from)"
        yield f"{count} figures{lent}; all of them: {data['figures'][0]['file']}"


def page_of(data: dict[str, Any], figures: Sequence[FigureFile]) -> str:
    """The page of all figures."""
    from profiles.plots.page import PageTable, gallery_page

    tables = [
        PageTable("Operators", TABLE_COLUMNS, table_rows(data)),
        PageTable("Collectives", COLLECTIVE_COLUMNS, collective_rows(data)),
    ]
    missing = [f"{gap['what']}; measure with: {gap['command']}" for gap in data["missing"]]
    return gallery_page(f"Measured profile of {data['device']}", (_head(data), LEGEND), tables, missing, figures)


def table_rows(data: dict[str, Any]) -> list[tuple[str, ...]]:
    """One row a table."""
    return [
        (
            _operator(fit),
            f"{fit['num_points']:,}" if fit["num_points"] else "",
            ", ".join(_size(name, *fit["sizes"][name]) for name in fit["sizes"]),
            *(_spread(fit["sigma"], name) for name in ("exact", "bracket", "unseen_site")),
            *_residual_cells(fit["residuals"]["site_left_out"] or fit["residuals"]["point_left_out"]),
            f"transferred from {fit['transferred_from']}" if fit["transferred_from"] else fit["environment"],
        )
        for fit in data["tables"]
    ]


def collective_rows(data: dict[str, Any]) -> list[tuple[str, ...]]:
    """One row a curve."""
    from planner.cli.render.words import seconds
    from profiles.plots.size_labels import byte_words

    return [
        (
            fit["operation"],
            _group(fit),
            f"{fit['num_sizes']:,}",
            f"{byte_words(fit['smallest_bytes'])} to {byte_words(fit['largest_bytes'])}",
            seconds(fit["latency_s"]),
            f"{fit['largest_bus_bandwidth_bytes_per_s'] / 1e9:,.1f}",
            _percent(fit["sigma"]["exact"]),
            _percent(fit["sigma"]["between"]),
            fit["environment"],
        )
        for fit in data["collectives"]
    ]


def _table_data(fit: TableFit) -> dict[str, Any]:
    origin = fit.origin
    return {
        "operator": origin.operator,
        "dtype": origin.dtype,
        "variant": origin.variant,
        "environment": origin.environment,
        "format": origin.format,
        "measured_on": origin.device,
        "transferred_from": origin.transferred_from,
        "batch_ids": list(origin.batch_ids),
        "num_points": origin.num_points,
        "num_sites": fit.num_sites,
        "num_axis_sizes": fit.num_axis_sizes,
        "measured_share": fit.measured_share,
        "sizes": {name: list(ends) for name, ends in fit.sizes.items()},
        "sigma": {
            "exact": fit.sigma_exact,
            "bracket": fit.sigma_bracket,
            "unseen_site": fit.sigma_unseen_site,
            "transfer": origin.extra_sigma,
        },
        "residuals": {
            "site_left_out": _summary(fit.site_left_out),
            "point_left_out": _summary(fit.point_left_out),
        },
    }


def _collective_data(fit: CollectiveFit) -> dict[str, Any]:
    return {
        **asdict(fit.key),
        "environment": fit.origin.environment,
        "format": fit.origin.format,
        "batch_ids": list(fit.origin.batch_ids),
        "num_points": fit.origin.num_points,
        "num_sizes": fit.num_sizes,
        "smallest_bytes": fit.smallest_bytes,
        "largest_bytes": fit.largest_bytes,
        "latency_s": fit.latency_s,
        "largest_bus_bandwidth_bytes_per_s": fit.largest_bus_bandwidth_bytes_per_s,
        "sigma": {"exact": fit.sigma_exact, "between": fit.sigma_between},
    }


def _summary(summary: ResidualSummary | None) -> dict[str, Any] | None:
    return None if summary is None else asdict(summary)


def _head(data: dict[str, Any]) -> str:
    from planner.cli.render.words import short_id

    return (
        f"profile {short_id(data['profile_id'])} of {data['device']}: {data['num_points']:,} measured points,"
        f" {len(data['tables'])} tables, {len(data['collectives'])} curves of collectives"
    )


def _operator(fit: dict[str, Any]) -> str:
    words = f"{fit['operator']} {fit['dtype']}"
    variant = fit["variant"]
    return words if not variant else f"{words} head {variant}" if variant.isdecimal() else f"{words} {variant}"


def _group(fit: dict[str, Any]) -> str:
    nodes = f"{fit['num_nodes']} node" + ("s" if fit["num_nodes"] > 1 else "")
    return f"{fit['group_size']} on {nodes}" + (", siblings active" if fit["concurrent"] else "")


def _size(name: str, low: float, high: float) -> str:
    from profiles.plots.size_labels import byte_words, count_words, short_words
    from profiles.prediction.fit_summary import MOVED_AXIS

    words = byte_words if name == MOVED_AXIS else count_words
    ends = words(low) if low == high else f"{words(low)}-{words(high)}"
    return f"{short_words(name)} {ends}"


def _residual_cells(summary: dict[str, Any] | None) -> tuple[str, str, str]:
    if summary is None:
        return "", "", ""
    return _percent(summary["median"]), _percent(summary["p90"]), f"{100 * summary['coverage']:.0f} %"


def _spread(sigma: dict[str, Any], name: str) -> str:
    """With what a transfer adds."""
    return "" if sigma[name] is None else _percent(math.hypot(sigma[name], sigma["transfer"]))


def _percent(fraction: float | None) -> str:
    return "" if fraction is None else f"{100 * fraction:.1f} %"
