"""An operator's use of the device as its rows or sequence grow: points, fit and 80 % band of some sites.

The fit passes through the points; how good it is where nothing was measured is shown by the second line: the same
curve predicted from the other sites alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from profiles.arrays import Array
from profiles.plots.size_labels import axis_words, set_sizes, short_words
from profiles.plots.style import BLUE, GREY, INK, ORANGE, Drawn, panels
from profiles.plots.table_words import file_stem, measured_on, site_words, table_title
from profiles.prediction.curve_table import Z80
from profiles.prediction.fit_summary import MOVED_AXIS, axis_name, site_names
from profiles.prediction.profile import OperatorTable
from profiles.prediction.residuals import Residuals

if TYPE_CHECKING:
    from matplotlib.axes import Axes


SITES_SHOWN = 6
STEPS_BETWEEN = 4


def draw_utilization(table: OperatorTable, left_out: Residuals) -> Drawn:
    """Panels of up to six sites from small to large; ``left_out``: the table's site residuals."""
    curves, origin = table.curves, table.origin
    rows = shown_sites(table)
    columns = min(3, len(rows))
    name = axis_name(origin.operator)
    title = f"{table_title(origin)}: share of the roofline over {short_words(name)}"
    size = (3.3, 2.6) if len(rows) > 1 else (6.5, 3.6)
    figure, axes = panels(title, -(-len(rows) // columns), columns, size, share=True)
    for panel in axes[len(rows) :]:
        panel.set_visible(False)
    seen = False
    for place, (panel, row) in enumerate(zip(axes, rows, strict=False)):
        seen |= _draw_site(panel, table, left_out, row)
        panel.set_title(site_words(origin, tuple(curves.sites[row].tolist())), loc="left")
        set_sizes(panel, "x", curves.axis[0], curves.axis[-1], in_bytes=name == MOVED_AXIS, most=5)
        panel.tick_params(labelbottom=place + columns >= len(rows))
        if place % columns == 0:
            panel.set_ylabel("share of the roofline (%)")
        if place + columns >= len(rows):
            panel.set_xlabel(axis_words(name))
    # Only now: a limit that is set stops the axes from growing with what is drawn after it.
    axes[0].set_ylim(bottom=0.0)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(handles), handlelength=3.0)
    sites = f"{len(rows)} of {len(curves.sites):,} sites" if site_names(origin.operator) else "the one curve"
    caption = (
        f"Share of the roofline that {table_title(origin)} reaches {measured_on(origin)}, for {sites}: measured points,"
        f" the fit between them with its 80 % interval"
        + (", and the curve predicted from the other sites alone with its own 80 % interval." if seen else ".")
        + " The roofline is the larger of FLOPs over peak and bytes over memory bandwidth, plus 3 µs for the launch."
    )
    return Drawn(file_stem(origin.operator, origin.dtype, origin.variant, "utilization"), title, caption, figure)


def shown_sites(table: OperatorTable, most: int = SITES_SHOWN) -> list[int]:
    """Well measured sites, evenly from small to large."""
    curves = table.curves
    counts = curves.measured.sum(axis=1)
    well = np.flatnonzero(counts >= np.median(counts))
    volume = np.log2(curves.sites[well]).sum(axis=1)
    order = well[np.lexsort((*curves.sites[well].T, volume))]
    # The very smallest and largest tell least: a tenth of the sites is left at either end.
    ends = len(order) // 10
    places = np.linspace(ends, len(order) - 1 - ends, min(most, len(order)))
    return [int(order[place]) for place in dict.fromkeys(np.rint(places).astype(int).tolist())]


def _draw_site(panel: Axes, table: OperatorTable, left_out: Residuals, row: int) -> bool:
    """Draw one site; whether a prediction without it could be drawn as well."""
    curves = table.curves
    measured = curves.measured[row]
    panel.axhline(100.0, color=GREY, linewidth=0.8)
    fine = _between(curves.axis)
    value, sigma, _ = curves.predict(fine, np.repeat(curves.sites[[row]], len(fine), axis=0))
    sigma[0], sigma[-1] = sigma[min(1, len(fine) - 1)], sigma[max(len(fine) - 2, 0)]
    points = _percent(curves.log_util[row, measured])
    panel.plot(
        curves.axis[measured],
        points,
        linestyle="none",
        marker="o",
        markersize=3.2,
        markerfacecolor="white",
        markeredgecolor=INK,
        markeredgewidth=0.8,
        zorder=4,
        label="measured",
    )
    panel.plot(fine, _percent(value), color=BLUE, linewidth=1.3, label="fit")
    low, high = _percent(value - Z80 * sigma), _percent(value + Z80 * sigma)
    panel.fill_between(fine, low, high, color=BLUE, alpha=0.25, linewidth=0, label="its 80 % interval")
    here = left_out.row == row
    if here.any():
        axis = curves.axis[left_out.column[here]]
        share = _percent(curves.log_util[row, left_out.column[here]] - left_out.log_error[here])
        spread = np.exp(Z80 * left_out.sigma[here])
        panel.plot(axis, share, color=ORANGE, linestyle=(0, (4, 2)), linewidth=1.3, label="predicted without the site")
        low, high = share / spread, share * spread
        panel.fill_between(axis, low, high, color=ORANGE, alpha=0.18, linewidth=0, label="its 80 % interval")
    return bool(here.any())


def _between(axis: Array) -> Array:
    """The ends, and sizes strictly between the axis points: at them the interval is that of a direct hit, a spike."""
    if len(axis) < 2:
        return axis
    steps = (np.arange(STEPS_BETWEEN) + 0.5) / STEPS_BETWEEN
    logs = np.log2(axis)
    fine = np.exp2((logs[:-1, None] + np.diff(logs)[:, None] * steps[None, :]).ravel())
    with_ends: Array = np.r_[axis[0], fine, axis[-1]]
    return with_ends


def _percent(log_util: Array) -> Array:
    share: Array = 100.0 * np.exp(log_util)
    return share
