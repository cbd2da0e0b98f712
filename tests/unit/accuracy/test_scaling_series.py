"""Scaling series are found among measured runs, and their drift is told."""

from __future__ import annotations

import math

import pytest

from benchmarks.scaling_series import Series, every_series, series_of, table
from planner.evidence.runs.prediction import map_rows
from planner.evidence.runs.truth import TruthRow
from tests.accuracy_rows import rows_of

RUN = {
    "source": "github:NVIDIA/dgxc-benchmarking:x", "device": "H100-SXM-80GB", "tp": "4", "pp": "1", "dp": "",
    "precision": "bf16",
}  # fmt: skip


def _rows(counts: tuple[int, ...], batch_a_device: float = 4.0, batch: int = 0) -> list[TruthRow]:
    changes = [
        {**RUN, "id": f"run-{count}", "num_devices": str(count), "gbs": str(batch or int(batch_a_device * count))}
        for count in counts
    ]
    return rows_of(*changes)


@pytest.mark.parametrize(
    ("counts", "batch", "kind"),
    [((64, 128, 256), 0, "weak"), ((64, 128, 256), 2048, "strong"), ((64, 128), 0, None), ((8, 16, 32), 0, None)],
)
def test_what_makes_a_series(counts: tuple[int, ...], batch: int, kind: str | None) -> None:
    runs, unmapped = map_rows(_rows(counts, batch=batch))
    assert not unmapped
    found = series_of(runs)
    assert [each.kind for each in found] == ([] if kind is None else [kind])
    if found:
        assert found[0].devices == counts
        assert len(found[0].before) == len(found[0].after) == len(counts)
        # 64 devices and more wait longer for the slowest.
        assert all(after > before for before, after in zip(found[0].before, found[0].after, strict=True))


def test_drift_and_scatter() -> None:
    one = Series("source", "bf16", "model", "weak", (64, 128, 256), (1.0, 0.9, 0.8), (1.0, 1.0, 1.0))
    assert Series.drift(one.before) == pytest.approx(math.log(0.8))
    assert Series.scatter(one.after) == 0
    assert "| source, bf16 | weak | 1 | 64 to 256 | -22.3 % | +0.0 % |" in table([one])
    assert "64: 1.00, 128: 1.00, 256: 1.00" in every_series([one])
