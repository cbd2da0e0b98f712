"""The page that says what each mechanism buys: ``python -m benchmarks.mechanism_page TRUTH.csv...``.

Writes the tables and the figure of ``docs/explanation/what-each-mechanism-buys.md`` between its markers.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.mechanisms import MEMORY, TIME, Loss, losses
from planner.evidence.accuracy.fitted_rows import committed_fitted_rows
from planner.evidence.accuracy.plots.gallery import compact_svg
from planner.evidence.runs.prediction import map_rows
from profiles.plots.figure_file import svg_text
from profiles.plots.style import BLUE, ORANGE, Drawn, house_style, panels

PAGE = Path("docs/explanation/what-each-mechanism-buys.md")
FIGURE = "mechanisms"
BEGIN, END = "<!-- mechanisms:begin -->", "<!-- mechanisms:end -->"
MOST_BARS = 14


def main() -> int:
    """Write page and figure."""
    from planner.cli.commands.accuracy import read_truth_files

    parser = argparse.ArgumentParser(prog="python -m benchmarks.mechanism_page")
    parser.add_argument("truth", nargs="+", type=Path)
    rows, groups = read_truth_files(parser.parse_args().truth)
    fitted = committed_fitted_rows()
    runs, _ = map_rows([row for row in rows if not row.out_of_memory and not fitted.holds(row)])
    time = list(losses(runs, TIME, groups, "time"))
    memory = list(losses(runs, MEMORY, groups, "memory"))
    with house_style():
        drawn = draw_losses(time)
        figure = f"{FIGURE}/{drawn.name}.svg"
        place = PAGE.parent / figure
        place.parent.mkdir(exist_ok=True)
        place.write_text(compact_svg(svg_text(drawn)), encoding="utf-8")
    parts = (
        f"![{drawn.caption}]({figure})\n\n*{drawn.caption}*",
        "### Step time\n\n" + table(time, ranked=True),
        "### Memory\n\n" + table(memory, ranked=False),
    )
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    PAGE.write_text(head + BEGIN + "\n" + "\n\n".join(parts) + "\n" + END + tail, encoding="utf-8")
    print(f"written: {PAGE}, {place}")
    return 0


def table(found: Sequence[Loss], *, ranked: bool) -> str:
    """One row for each mechanism and source."""
    head = ["mechanism", "source", "rows", "median without", "with", "mean without", "with"]
    head += ["tau without", "with", "good picks without", "with"] if ranked else []
    lines = [head, ["---", "---", *("---:" for _ in head[2:])]]
    for each in found:
        without, whole = each.before, each.after
        shares = [without.median, whole.median, without.mean, whole.mean]
        cells = [each.mechanism.name, each.source, str(whole.n), *map(_percent, shares)]
        if ranked:
            picks = without.good_picks, whole.good_picks
            cells += [_decimal(without.tau), _decimal(whole.tau), *map(_percent, picks)]
        lines.append(cells)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def draw_losses(found: Sequence[Loss]) -> Drawn:
    """Bars of the mean error without and with the mechanisms that buy most."""
    most = sorted(found, key=lambda each: each.after.mean - each.before.mean)[:MOST_BARS]
    title = "Mean error of the step time without and with each mechanism"
    figure, axes = panels(title, 1, 1, (7.5, 4.6))
    panel, places = axes[0], range(len(most))
    panel.barh([place + 0.2 for place in places], [100 * each.before.mean for each in most], 0.38, color=ORANGE,
               label="without it", hatch="//", edgecolor="white")  # fmt: skip
    panel.barh([place - 0.2 for place in places], [100 * each.after.mean for each in most], 0.38, color=BLUE,
               label="with all of them")  # fmt: skip
    panel.set_yticks(list(places), [f"{each.mechanism.name}\n{each.source}" for each in most], fontsize=7)
    panel.invert_yaxis()
    panel.set_xlabel("mean error of the step time (%)")
    panel.legend(loc="lower right")
    first = most[0]
    caption = (
        f"Mean error of judged rows without and with each mechanism, the {len(most)} largest differences: without the"
        f" {first.mechanism.name} {_percent(first.before.mean)} on {first.source}, with it"
        f" {_percent(first.after.mean)}."
    )
    return Drawn("losses", title, caption, figure)


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(main())
