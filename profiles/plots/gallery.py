"""The figures of a profile: up to four a measured table, one an operation and seven groups of collectives.

Transferred tables have none: their measurements are drawn with the device or number format that they come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from profiles.plots.collective_times import GROUPS_A_FIGURE, draw_collectives
from profiles.plots.coverage_map import draw_coverage_map
from profiles.plots.figure_file import FigureFormat, write_figure
from profiles.plots.predicted_measured import draw_predicted_measured
from profiles.plots.residual_histogram import draw_residual_histogram
from profiles.plots.style import Drawn, house_style
from profiles.plots.table_words import table_title
from profiles.plots.utilization import draw_utilization
from profiles.prediction.collective_curves import CollectiveCurve
from profiles.prediction.fit_summary import natural_order
from profiles.prediction.profile import CollectiveKey, OperatorTable, Profile
from profiles.prediction.residuals import left_out_of, point_residuals, site_residuals

Progress = Callable[[int, int], None]
Drawing = Callable[[], Iterator[Drawn]]


@dataclass(frozen=True, slots=True)
class FigureFile:
    """A figure as it lies in the folder; ``section``: the table or operation that it belongs to."""

    section: str
    title: str
    caption: str
    file_name: str


def draw_profile(
    profile: Profile, folder: Path, figure_format: FigureFormat, progress: Progress | None = None
) -> tuple[FigureFile, ...]:
    """Draw and write all figures of a profile into ``folder``.  Raises OSError where it cannot be written."""
    folder.mkdir(parents=True, exist_ok=True)
    written: list[FigureFile] = []
    sections = _sections(profile)
    with house_style():
        for done, (section, drawing) in enumerate(sections):
            if progress:
                progress(done, len(sections))
            for drawn in drawing():
                path = write_figure(drawn, folder, figure_format)
                written.append(FigureFile(section, drawn.title, drawn.caption, path.name))
    if progress:
        progress(len(sections), len(sections))
    return tuple(written)


def _sections(profile: Profile) -> list[tuple[str, Drawing]]:
    """Titles and what draws their figures, one table at a time: figures of all tables would fill the memory."""
    sections: list[tuple[str, Drawing]] = []
    for key in sorted(profile.operators, key=natural_order):
        table = profile.operators[key]
        if not table.origin.transferred_from:
            sections.append((table_title(table.origin), _TableDrawing(table)))
    for operation in sorted({key.operation for key in profile.collectives}):
        curves = [(key, curve) for key, curve in sorted(profile.collectives.items()) if key.operation == operation]
        curves.sort(key=lambda each: (each[0].num_nodes, each[0].group_size, each[0].concurrent))
        sections.append((operation.replace("_", " "), _CollectiveDrawing(profile.device, operation, curves)))
    return sections


@dataclass(frozen=True, slots=True)
class _TableDrawing:
    table: OperatorTable

    def __call__(self) -> Iterator[Drawn]:
        origin = self.table.origin
        left_out = left_out_of(self.table)
        by_site, by_point = site_residuals(self.table, left_out), point_residuals(self.table, left_out)
        yield draw_utilization(self.table, by_site)
        kinds = {"Whole site left out": by_site, "One point left out": by_point}
        alone = not len(by_site.row)
        for drawn in (
            draw_residual_histogram(origin, kinds),
            draw_predicted_measured(origin, by_point if alone else by_site, "the point" if alone else "its site"),
            draw_coverage_map(self.table),
        ):
            if drawn is not None:
                yield drawn


@dataclass(frozen=True, slots=True)
class _CollectiveDrawing:
    device: str
    operation: str
    curves: Sequence[tuple[CollectiveKey, CollectiveCurve]]

    def __call__(self) -> Iterator[Drawn]:
        parts = range(0, len(self.curves), GROUPS_A_FIGURE)
        for number, start in enumerate(parts, start=1):
            name = f"part {number} of {len(parts)}" if len(parts) > 1 else ""
            yield draw_collectives(self.device, self.operation, self.curves[start : start + GROUPS_A_FIGURE], name)
