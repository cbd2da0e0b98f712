"""A map over the sizes of a table's sites: where the table is sure, where it only guesses, where it has no data.

A cell is an octave wide.  Its number is the half width of the stated 80 % interval at one size of the axis (median of
nine shapes spread over the cell), below it stands how many sites were measured in the cell.  Sites of three sizes
(attention, grouped products) are shown as slices: those where most was measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from profiles.arrays import Array
from profiles.plots.size_labels import axis_words, count_words, short_words
from profiles.plots.style import GREY, INK, Drawn, panels
from profiles.plots.table_words import file_stem, measured_on, size_words, table_title
from profiles.prediction.curve_table import Z80
from profiles.prediction.fit_summary import axis_name, site_names
from profiles.prediction.profile import OperatorTable
from profiles.prediction.rungs import Rung

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh


TYPICAL_SIZE = 4096.0
"""Rows or tokens of a micro-batch; the measured axis size next to it speaks."""
WITHIN_CELL = (-1.0 / 3.0, 0.0, 1.0 / 3.0)
MOST_SLICES = 3
CELL_INCHES, BESIDE_INCHES, BELOW_INCHES = 0.44, 0.75, 1.35
LEAST_INCHES = 6.0
"""Title and note need as much."""
LEVELS = (0.0, 2.5, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0)
"""Colour steps in percent; the same for every table, so that maps can be compared."""
DARK_FROM = 20.0
"""From here on the colour is too dark for dark figures on it."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A plane through the sites: the sizes across and up, and what the third one is."""

    words: str
    across: int
    up: int
    held: int | None = None
    value: float = 1.0
    ratio: bool = False

    def sites(self, x: Array, y: Array) -> Array:
        """Sites [P, D] of points of the plane."""
        sites = np.ones((len(x), 2 if self.held is None else 3))
        sites[:, self.across], sites[:, self.up] = x, y
        if self.held is not None:
            sites[:, self.held] = x / self.value if self.ratio else self.value
        return sites

    def holds(self, sites: Array) -> NDArray[np.bool_]:
        """Which sites lie in the plane."""
        if self.held is None:
            return np.ones(len(sites), dtype=bool)
        return np.isclose(sites[:, self.held], sites[:, self.across] / self.value if self.ratio else self.value)

    @property
    def multiple(self) -> float:
        """Sizes across are multiples of it: query heads of whole groups."""
        return self.value if self.ratio else 1.0


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of a slice: their middle sizes across [X] and up [Y], half widths in percent and sites [Y, X]."""

    x: Array
    y: Array
    half_percent: Array
    num_sites: NDArray[np.int64]


def draw_coverage_map(table: OperatorTable) -> Drawn | None:
    """Up to three slices; None where sites have no two sizes that vary."""
    curves, origin = table.curves, table.origin
    slices = slices_of(table)
    if not slices:
        return None
    at = float(curves.axis[np.argmin(np.abs(np.log2(curves.axis / TYPICAL_SIZE)))])
    cells = [cells_of(table, each, at) for each in slices]
    names = site_names(origin.operator)
    name = axis_name(origin.operator)
    title = f"{table_title(origin)}: certainty at {short_words(name)} {size_words(origin, at)}"
    widths = [len(each.x) * CELL_INCHES + BESIDE_INCHES for each in cells]
    width = max(sum(widths) + 0.4 * len(widths), LEAST_INCHES) / len(widths)
    height = max(len(each.y) for each in cells) * CELL_INCHES + BELOW_INCHES
    figure, axes = panels(title, 1, len(slices), (width, height), widths=widths)
    meshes = []
    for panel, each, found in zip(axes, slices, cells, strict=True):
        meshes.append(_draw(panel, found))
        panel.set_xlabel(axis_words(names[each.across]))
        panel.set_ylabel(axis_words(names[each.up]))
        panel.set_title(each.words, loc="left")
    label = "half width of the stated 80 % interval (%)"
    bar = figure.colorbar(meshes[0], ax=axes, label=label, shrink=0.9, pad=0.02)
    bar.set_ticks(list(LEVELS), labels=[f"{level:g}" for level in LEVELS])
    told = "number: half width of the 80 % interval (%)\nbelow it: sites measured in the cell; hatched: nothing said"
    figure.supxlabel(told, fontsize=8.5, color=INK)
    caption = (
        f"How sure predictions of {table_title(origin)} {measured_on(origin)} are at {short_words(name)}"
        f" {size_words(origin, at)}: each cell of an octave tells the half width of the stated 80 % interval in percent"
        " and how many sites were measured in it; hatched cells are too far from any measurement."
    )
    return Drawn(file_stem(origin.operator, origin.dtype, origin.variant, "coverage"), title, caption, figure)


def slices_of(table: OperatorTable) -> list[Slice]:
    """The planes with the most sites, smallest third size first."""
    sites = table.curves.sites
    names = site_names(table.origin.operator)
    if names == ("n", "k"):
        planes = [Slice("", 0, 1)]
    elif names == ("batch_size", "num_heads", "num_kv_heads"):
        planes = [
            Slice(f"{value:g} query head{'s' if value > 1 else ''} a kv head", 1, 0, 2, value, ratio=True)
            for value in _commonest(sites[:, 1] / sites[:, 2])
        ]
    elif len(names) == 3:
        planes = [Slice(f"{short_words(names[2])} {value:g}", 0, 1, 2, value) for value in _commonest(sites[:, 2])]
    else:
        planes = []
    return [plane for plane in planes if _spans(sites[plane.holds(sites)], plane)]


def cells_of(table: OperatorTable, plane: Slice, at: float) -> Cells:
    """Half widths and sites of all cells of a plane, one octave around what was measured."""
    curves = table.curves
    own = curves.sites[plane.holds(curves.sites)]
    x, y = _octaves(own[:, plane.across], plane.multiple), _octaves(own[:, plane.up], 1.0)
    offsets = np.exp2(np.array(WITHIN_CELL))
    up, across, up_offset, across_offset = (each.ravel() for each in np.meshgrid(y, x, offsets, offsets, indexing="ij"))
    across = np.maximum(np.rint(across * across_offset / plane.multiple), 1.0) * plane.multiple
    up = np.maximum(np.rint(up * up_offset), 1.0)
    # A copy: the table would keep every unseen site of the map.
    told = replace(curves, _cache=None).predict(np.full(len(across), at), plane.sites(across, up))
    sigma = np.where(told[2] == Rung.MISSING, np.nan, told[1]).reshape(len(y), len(x), -1)
    num_sites = np.zeros((len(y), len(x)), dtype=np.int64)
    np.add.at(num_sites, (_cell(own[:, plane.up], y), _cell(own[:, plane.across], x)), 1)
    # A cell that is out of reach in part counts as out of reach.
    return Cells(x, y, 100.0 * np.expm1(Z80 * np.median(sigma, axis=2)), num_sites)


def _commonest(values: Array) -> list[float]:
    found, counts = np.unique(values, return_counts=True)
    order = np.lexsort((found, -counts))
    return sorted(found[order[:MOST_SLICES]].tolist())


def _spans(sites: Array, plane: Slice) -> bool:
    return all(len(np.unique(sites[:, column])) > 1 for column in (plane.across, plane.up))


def _octaves(values: Array, multiple: float) -> Array:
    """Middles of cells from an octave below the smallest size to an octave above the largest, at least one."""
    low, high = np.rint(np.log2(values.min() / multiple)), np.rint(np.log2(values.max() / multiple))
    middles: Array = np.exp2(np.arange(max(low - 1.0, 0.0), high + 2.0)) * multiple
    return middles


def _cell(values: Array, middles: Array) -> NDArray[np.int64]:
    place: NDArray[np.int64] = np.clip(np.rint(np.log2(values / middles[0])), 0, len(middles) - 1).astype(np.int64)
    return place


def _draw(panel: Axes, cells: Cells) -> QuadMesh:
    from matplotlib import colormaps
    from matplotlib.colors import BoundaryNorm
    from matplotlib.patches import Rectangle

    colours = colormaps["YlGnBu"]
    half = np.minimum(cells.half_percent, LEVELS[-1] - 0.01)
    edges_x, edges_y = np.arange(len(cells.x) + 1.0) - 0.5, np.arange(len(cells.y) + 1.0) - 0.5
    mesh = panel.pcolormesh(
        edges_x,
        edges_y,
        np.ma.masked_invalid(half),
        norm=BoundaryNorm(list(LEVELS), colours.N),
        cmap=colours,
        edgecolors="white",
        linewidth=0.6,
    )
    for (row, column), value in np.ndenumerate(cells.half_percent):
        if np.isnan(value):
            corner = (column - 0.5, row - 0.5)
            panel.add_patch(Rectangle(corner, 1, 1, fill=False, hatch="////", edgecolor=GREY, linewidth=0.3))
            continue
        count = int(cells.num_sites[row, column])
        text: dict[str, Any] = {"ha": "center", "color": "white" if value >= DARK_FROM else INK}
        words = f"{value:.1f}" if value < 9.95 else f"{value:.0f}"
        panel.text(
            column, row + (0.06 if count else 0.0), words, va="bottom" if count else "center", fontsize=8, **text
        )
        if count:
            panel.text(column, row - 0.06, str(count), va="top", fontsize=6.5, **text)
    panel.set_xticks(range(len(cells.x)), [count_words(size) for size in cells.x.tolist()], rotation=90)
    panel.set_yticks(range(len(cells.y)), [count_words(size) for size in cells.y.tolist()])
    panel.tick_params(length=0)
    panel.grid(visible=False)
    panel.set_aspect("equal")
    return mesh
