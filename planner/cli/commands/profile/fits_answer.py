"""The fits of a device: as data, as tables on the terminal, and as the tables of the page of figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

    from profiles.device import Device
    from profiles.plots.gallery import FigureFile
    from profiles.prediction.profile import Profile

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
    from planner.answers.views.fits import fits_view

    return {**fits_view(profile, device).model_dump(mode="json"), "figures": []}


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
    from profiles.html_page import PageTable
    from profiles.plots.page import gallery_page

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
    from planner.answers.views.words import seconds
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


def _head(data: dict[str, Any]) -> str:
    from planner.answers.views.words import short_id

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
