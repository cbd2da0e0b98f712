"""Plot of the speed that our pick loses in each group of runs that differ only in their strategy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from planner.evidence.accuracy.plots.shown import framed, grid, panel_title, panels_of
from planner.evidence.accuracy.ranking import GOOD_PICK
from profiles.plots.size_labels import percent_words
from profiles.plots.style import BLUE, GREY, INK, ORANGE, Drawn, panels

LEAST_TOP = 10.0
OWN_PANEL = 3
MARKED = 40
"""Ranking groups for a panel of its own, and up to which each is marked."""


def draw_regret(data: Mapping[str, Any]) -> Drawn | None:
    """Ranking groups from the best to the worst pick, a panel a group of rows."""
    found = data["ranking_groups"]
    shown = panels_of(found, OWN_PANEL)
    if not shown:
        return None
    from matplotlib.ticker import MaxNLocator

    title = "Speed lost by our pick, ranking group by ranking group"
    height, width = grid(len(shown))
    figure, axes = panels(title, height, width, (3.5, 2.5))
    top = max(LEAST_TOP, 105.0 * max(each["regret"] for each in found))
    for panel, (group, own) in zip(axes, shown.items(), strict=False):
        picked = 100.0 * np.sort([each["regret"] for each in own])
        third = 100.0 * np.sort([each["top3_regret"] for each in own])
        place = np.arange(len(own)) + 1
        marks: dict[str, Any] = {
            "drawstyle": "steps-mid",
            "linewidth": 1.3,
            "markersize": 3.5,
            "markerfacecolor": "white",
        }
        marked = len(own) <= MARKED
        panel.plot(place, picked, color=ORANGE, marker="o" if marked else None, label="our pick", **marks)
        panel.plot(
            place, third, color=BLUE, marker="^" if marked else None, linestyle="--", label="best of our three", **marks
        )
        panel.axhline(100.0 * GOOD_PICK, color=GREY, linewidth=0.9, linestyle=":", label="good pick: at most 5 %")
        panel.axhline(0.0, color=INK, linewidth=0.6)
        panel.set_xlim(0.4, len(own) + 0.6)
        panel.set_ylim(-0.02 * top, top)
        panel.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
        panel.set_title(panel_title(group, own), loc="left")
    framed(figure, axes, len(shown), "ranking groups, best first", "speed lost (%)", 3.2)
    regrets = np.array([each["regret"] for each in found])
    caption = (
        f"Part of the best measured speed that the run we would pick loses, in {len(found):,} groups of runs that"
        f" differ only in their strategy: mean {percent_words(regrets.mean())}, at most 5 % in"
        f" {percent_words((regrets <= GOOD_PICK).mean(), 0)} of the groups."
    )
    return Drawn("regret", title, caption, figure)
