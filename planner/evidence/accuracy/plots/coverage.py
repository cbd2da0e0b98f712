"""Plot of interval coverage: part of the rows inside, over the stated level; the diagonal is exact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from profiles.plots.size_labels import percent_words
from profiles.plots.style import GREY, INK, SERIES, Drawn, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LINES = 5
LINES_FROM = 20
"""Groups with fewer rows jump too much to be drawn by themselves."""
Group = Mapping[str, Any]


def draw_coverage(data: Mapping[str, Any]) -> Drawn | None:
    """Without calibration, and after it where there is one."""
    parts = {"predicted": data["groups"]}
    if "calibration" in data:
        groups = data["calibration"]["groups"]
        parts["calibrated"] = [{"group": each["group"], **each["calibrated"]} for each in groups]
    names = _names(data["groups"])
    everything = data["groups"][-1]
    if not everything["coverage_curve"]:
        return None
    title = "What the stated intervals really hold"
    figure, axes = panels(title, 1, len(parts), (4.6, 4.0), share=True)
    for panel, (words, groups) in zip(axes, parts.items(), strict=True):
        _draw(panel, {each["group"]: each for each in groups}, names)
        panel.set_title(words, loc="left")
        panel.set_xlabel("stated level (%)")
    axes[0].set_ylabel("measured step times inside (%)")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, handlelength=4.0)
    level = data["interval_level"]
    held = "; ".join(
        f"{words} {percent_words(groups[-1]['interval_coverage'], 0)} of {groups[-1]['n']:,}"
        for words, groups in parts.items()
        if groups[-1]["interval_coverage"] is not None
    )
    caption = (
        "Part of the measured step times inside intervals of each stated level;"
        f" inside those of {percent_words(level, 0)}: {held}."
    )
    return Drawn("coverage", title, caption, figure)


def _names(groups: Sequence[Group]) -> list[str]:
    return [each["group"] for each in groups[:-1] if each["n"] >= LINES_FROM][:MOST_LINES]


def _draw(panel: Axes, groups: Mapping[str, Group], names: Sequence[str]) -> None:
    panel.fill_between([85, 95], [85, 85], [95, 95], color=GREY, alpha=0.25, linewidth=0, label="wanted at 90 %")
    panel.plot([50, 100], [50, 100], color=GREY, linewidth=0.9, label="as stated")
    for name, (colour, marker, line) in zip(("all", *names), (SERIES[-1], *SERIES), strict=False):
        found = groups[name]["coverage_curve"] if name in groups else []
        if found:
            x, y = ([100.0 * each[field] for each in found] for field in ("level", "holds"))
            label = "all" if name == "all" else name
            bold = 2.2 if name == "all" else 1.2
            panel.plot(
                x, y, color=colour, marker=marker, linestyle=line, linewidth=bold, markersize=4, label=label,
                markerfacecolor="white", markeredgecolor=INK if name == "all" else colour,
            )  # fmt: skip
    panel.set_xlim(48, 97)
    panel.set_ylim(-2, 102)
