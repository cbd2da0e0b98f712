"""The fabric as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.cli.render.tables import facts, heading, table

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.answers.views.fabric import FabricView


def fabric_tables(view: FabricView) -> list[RenderableType]:
    """Parts, bisection, losses, and the axes of a plan."""
    per_device = view.bisection_bytes_per_s / (view.num_devices // 2)
    between = ", ".join(view.bisection_between)
    parts: list[RenderableType] = [
        facts(
            [
                ("cluster", f"{view.cluster}, {view.num_devices:,} devices"),
                ("bisection", f"{_rate(view.bisection_bytes_per_s)}, {_rate(per_device)} a device, cut at {between}"),
                ("rails", str(view.rails) if view.rails > 1 else "none"),
            ]
        ),
        heading("Parts"),
        table(
            "",
            ("kind", ">places", ">switches or NICs"),
            [(part.kind, f"{part.count:,}", f"{part.switches:,}") for part in view.parts],
        ),
        heading("Losses"),
        table(
            "",
            ("lost", ">bisection left", ">a part of"),
            [(each.lost, _rate(each.bisection_bytes_per_s), f"{each.remains:.1%}") for each in view.losses],
        ),
    ]
    if view.axes:
        rows = [
            (
                axis.axis,
                f"{axis.pattern} of {axis.group_size:,}",
                _rate(axis.alone_bytes_per_s),
                _rate(axis.together_bytes_per_s),
                f"{axis.slowdown:.2f}",
                ", ".join(f"{name} {part:.2f}" for name, part in axis.with_lost.items() if part < 0.9995) or "-",
                ", ".join(axis.links),
            )
            for axis in view.axes
        ]
        columns = ("axis", "groups", ">alone", ">all at once", ">slower", "left with a loss", "links")
        parts += [heading("Axes"), table("", columns, rows)]
    return parts


def _rate(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e9:,.4g} GB/s"
