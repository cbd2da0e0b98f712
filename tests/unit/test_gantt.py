"""The text chart fits its width and shows who works when."""

from __future__ import annotations

import pytest

from planner.errors import DocumentInvalid
from planner.predict.schedule.gantt import text_gantt
from planner.predict.schedule.orders import build_order
from planner.predict.schedule.simulate import simulate


def test_small_chart_exactly() -> None:
    """1F1B, two ranks, three micro-batches, F 1, B 2: 12 time units, two columns each."""
    ran = simulate(build_order("1f1b", 2, 1, 3), 1.0, 2.0, 1.0)
    assert ran.makespan_s == 12.0
    chart = text_gantt(ran, width=8 + 24 + len("|  75 % busy, holds 2")).splitlines()
    assert chart[0] == "rank 0 |FFFF....BBBBFFBBBB..BBBB|  75 % busy, holds 2"
    assert chart[1] == "rank 1 |..FFBBBBFFBBBBFFBBBB....|  75 % busy, holds 1"
    assert chart[2].split() == ["0", "12", "s"]
    assert "25.0 % of the time shown" in chart[-1]


def test_split_backward_and_later_chunks_have_their_letters() -> None:
    chart = text_gantt(simulate(build_order("zbv", 2, 2, 4), 0.01, 0.02, 0.01), width=90)
    assert set("FfIiWw.") <= set("".join(line for line in chart.splitlines() if line.startswith("rank")))
    assert "lower case: later chunks" in chart
    assert "ms" in chart


@pytest.mark.parametrize("width", [50, 80, 133])
@pytest.mark.parametrize("num_stages", [1, 4, 12])
def test_width_is_kept(width: int, num_stages: int) -> None:
    chart = text_gantt(simulate(build_order("1f1b", num_stages, 1, 20), 1e-6, 2e-6, 1e-6), width=width)
    assert all(len(line) <= width for line in chart.splitlines())
    assert chart.isascii()
    assert "\x1b" not in chart
    assert sum(line.startswith("rank") for line in chart.splitlines()) == num_stages


def test_many_ranks_leave_the_middle_out() -> None:
    lines = text_gantt(simulate(build_order("gpipe", 40, 1, 8), 1.0, 2.0, 0.0), width=80, max_rows=6).splitlines()
    assert "(34 ranks left out)" in lines[3]
    assert [line[:7] for line in lines if line.startswith("rank")] == [f"rank {r:2d}" for r in (0, 1, 2, 37, 38, 39)]


def test_too_narrow_is_refused_with_the_needed_width() -> None:
    ran = simulate(build_order("gpipe", 2, 1, 2), 1.0, 2.0, 0.0)
    with pytest.raises(DocumentInvalid, match="too small") as caught:
        text_gantt(ran, width=20)
    needed = int(str(caught.value).split("width at least ")[1].split(",")[0])
    assert max(map(len, text_gantt(ran, width=needed).splitlines())) <= needed or needed < 50
