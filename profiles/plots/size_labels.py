"""Labels of sizes and times at an axis: powers of two as people say them, seconds in the unit that fits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from profiles.prediction.fit_summary import MOVED_AXIS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AXIS_WORDS = {
    "m": "rows m of the product",
    "n": "columns n of the weight",
    "k": "depth k of the product",
    "num_groups": "number of groups",
    "query_length": "sequence length (tokens)",
    "batch_size": "batch size (sequences)",
    "num_heads": "query heads",
    "num_kv_heads": "key-value heads",
    MOVED_AXIS: "bytes read and written",
}
SHORT_WORDS = {
    "num_groups": "groups",
    "query_length": "sequence",
    "batch_size": "batch",
    "num_heads": "heads",
    "num_kv_heads": "kv heads",
    MOVED_AXIS: "bytes moved",
}
MOST_TICKS = 7


def axis_words(name: str) -> str:
    """``rows m of the product``."""
    return AXIS_WORDS.get(name, name)


def short_words(name: str) -> str:
    """``heads``, ``n``."""
    return SHORT_WORDS.get(name, name)


def count_words(value: float) -> str:
    """``512``, ``4,096``, ``16k`` from 10,240 on where it is whole."""
    whole = round(value)
    return f"{whole // 1024}k" if whole >= 8192 and whole % 1024 == 0 else f"{whole:,}"


def byte_words(value: float) -> str:
    """``512 B``, ``64 KiB``, ``1 GiB``."""
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.3g} B"


def time_words(value_s: float) -> str:
    """``10 µs``, ``1 ms``, ``2 s``."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if value_s >= scale * 0.9999:
            return f"{value_s / scale:.3g} {unit}"
    return f"{value_s * 1e9:.3g} ns"


def percent_words(share: float, decimals: int = 1) -> str:
    """``2.6 %``."""
    return f"{100.0 * share:.{decimals}f} %"


def set_sizes(
    axes: Axes, which: str, low: float, high: float, *, in_bytes: bool = False, most: int = MOST_TICKS
) -> None:
    """A log2 axis (``which``: x or y) with ticks at powers of two."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / most))
    ticks = [2.0**power for power in range(first, last + 1, step)] or [low]
    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log", base=2)
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    words = byte_words if in_bytes else count_words
    axis.set_major_formatter(FuncFormatter(lambda value, _: words(value)))


def set_times(axes: Axes, which: str) -> None:
    """A log axis of seconds (``which``: x or y)."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis = axes.xaxis if which == "x" else axes.yaxis
    (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    axis.set_major_locator(LogLocator(base=10.0, numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: time_words(value)))
    axis.set_minor_formatter(NullFormatter())


def set_ratios(axes: Axes, reach: float) -> None:
    """A log axis up of ratios from 1 / ``reach`` to ``reach`` with ticks at round numbers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    fine = (0.9, 0.95, 1.0, 1.05, 1.1) if reach < 1.35 else (0.8, 1.0, 1.25)
    ticks = [ratio for ratio in (1 / 3, 0.5, 0.67, *fine, 1.5, 2.0, 3.0) if 1 / reach <= ratio <= reach]
    ticks += [ratio for ratio in (0.8, 1.25) if ratio not in ticks and 1 / reach <= ratio <= reach]
    axes.set_yscale("log")
    axes.set_ylim(1.0 / reach, reach)
    axes.yaxis.set_major_locator(FixedLocator(sorted(ticks)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.2g}" if value < 0.7 else f"{value:.3g}"))
