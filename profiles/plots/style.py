"""The style of figures: dark text on white, colours safe for the colour-blind, and a marker for each colour.

Figures are drawn without pyplot: nothing global stays behind.  matplotlib is imported only here and in the functions
that draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from profiles.errors import DocumentInvalid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GREY, PALE = "#1a1a1a", "#595959", "#d9d9d9"
BLUE, ORANGE, GREEN, PURPLE, YELLOW, SKY = "#0072b2", "#d55e00", "#007a5a", "#b0578d", "#b88600", "#3f8fc4"
SERIES = (
    (BLUE, "o", "-"),
    (ORANGE, "s", "--"),
    (GREEN, "^", "-."),
    (PURPLE, "D", ":"),
    (YELLOW, "v", (0, (5, 1))),
    (SKY, "P", (0, (3, 1, 1, 1))),
    (INK, "X", (0, (1, 1))),
)
"""Colour, marker and line of each series.  Colours after Okabe and Ito, *Color Universal Design* (2008), the light
ones darkened to be read on white."""

_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "meshwright",
    "svg.fonttype": "none",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial", "sans-serif"],
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.labelsize": 9.0,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": PALE,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.dpi": 130,
    "figure.dpi": 100,
    "path.simplify": True,
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A figure with its file name (no suffix), its title, and one sentence that says what it shows."""

    name: str
    title: str
    caption: str
    figure: Figure


def require_matplotlib(where: str = "--plot") -> None:
    """Raises DocumentInvalid with the install command where matplotlib is missing."""
    try:
        import matplotlib.figure  # noqa: F401  # whether it can be imported is the question
    except ImportError:
        raise DocumentInvalid(
            "plots need matplotlib, which is not installed",
            where=where,
            hint="pip install 'meshwright[plot]'",
        ) from None


@contextmanager
def house_style() -> Iterator[None]:
    """Draw and save inside it: every figure looks alike, whatever the user's own matplotlib settings are."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


def panels(
    title: str,
    rows: int,
    columns: int,
    size: tuple[float, float],
    *,
    share: bool = False,
    widths: Sequence[float] | None = None,
) -> tuple[Figure, list[Axes]]:
    """A figure with a title and ``rows`` x ``columns`` panels of ``size`` inches each, in reading order.

    ``widths``: how the columns share the whole width; evenly if not said.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size[0] * columns, size[1] * rows + 0.35))
    figure.set_layout_engine("constrained", h_pad=0.07, w_pad=0.05)
    figure.suptitle(title, fontsize=11, fontweight="bold", x=0.01, ha="left")
    grid = figure.subplots(rows, columns, squeeze=False, sharex=share, sharey=share, width_ratios=widths)
    return figure, list(grid.ravel())
