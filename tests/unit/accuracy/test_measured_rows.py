"""The steps measured on one H100 are all predicted, chose nothing, and their words say what ran."""

from __future__ import annotations

from pathlib import Path

from planner.evidence.accuracy.fitted_rows import committed_fitted_rows
from planner.evidence.runs.prediction import predict_rows
from planner.evidence.runs.row_flavour import flavour_of_row
from planner.evidence.runs.truth import TruthRow, read_truth

RUNS = Path(__file__).parents[3] / "benchmarks" / "measured" / "h100_single_device.csv"


def rows() -> list[TruthRow]:
    return read_truth(RUNS.read_text(encoding="utf-8"), RUNS.name)


def test_every_row_is_predicted_and_none_was_fitted() -> None:
    assert len({row.id for row in rows()}) == 33
    predictions, unmapped = predict_rows(rows())
    assert len(predictions) == 33
    assert not unmapped
    fitted = committed_fitted_rows()
    assert not [row.id for row in rows() if fitted.holds(row)]


def test_the_software_is_the_one_that_ran() -> None:
    found = {row.id.split("-")[0]: flavour_of_row(row).name for row in rows()}
    assert found == {
        "hf": "Hugging Face trainer",
        "native": "native",
        "deepspeed": "Hugging Face models under DeepSpeed",
        "megatron": "megatron",
    }
