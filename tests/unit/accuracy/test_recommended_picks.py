"""The measured run that is picked, and what the pick loses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.evidence.accuracy.recommended_picks import Run, pick_data, picks
from planner.search.recommend import BAND

FAST = Run("q", "judged", predicted_s=1.0, measured_s=1.0, chance=0.97, num_mechanisms=2, common=True)
SURE = replace(FAST, predicted_s=1.03, measured_s=1.2, chance=0.995)
SIMPLE = replace(FAST, predicted_s=1.02, measured_s=0.9, num_mechanisms=0)
FAR = replace(FAST, predicted_s=1.0 + 2 * BAND, chance=0.999, num_mechanisms=0)
RISKY = replace(FAST, predicted_s=0.9, measured_s=0.8, chance=0.6, num_mechanisms=0)
UNSURE = replace(SIMPLE, chance=0.955)


@pytest.mark.parametrize(
    ("runs", "recommended"),
    [
        ([FAST, FAR], FAST),
        ([FAST, SIMPLE], SIMPLE),
        ([FAST, SIMPLE, SURE], SURE),
        ([FAST, UNSURE], FAST),
        ([FAST, replace(FAST, predicted_s=1.01, chance=0.98)], FAST),
        ([replace(FAST, common=False), replace(FAST, predicted_s=1.01)], replace(FAST, predicted_s=1.01)),
    ],
)
def test_the_written_order_decides(runs: list[Run], recommended: Run) -> None:
    assert picks(runs) == (runs[0], recommended)


def test_a_search_allows_what_has_the_usual_chance() -> None:
    assert picks([RISKY, FAST]) == (FAST, FAST)
    assert picks([RISKY]) == (RISKY, RISKY)


def test_regret_is_told_of_each_part() -> None:
    other = [replace(run, key="other", part="fitted") for run in (FAST, SURE)]
    alone = [replace(FAST, key="alone")]
    data = pick_data([FAST, SIMPLE, RISKY, *other, *alone])
    assert data["judged"]["groups"] == data["judged"]["differ"] == 1
    assert data["judged"]["fastest_regret"] == pytest.approx(1 - 0.8 / 1.0)
    assert data["judged"]["recommended_regret"] == pytest.approx(1 - 0.8 / 0.9)
    assert (data["fitted"]["fastest_regret"], data["fitted"]["recommended_regret"]) == (0, pytest.approx(1 - 1 / 1.2))
