"""Reading measured runs: what is accepted, and that everything wrong is said at once."""

from __future__ import annotations

import pytest

from planner.accuracy.truth import COLUMNS, read_truth
from planner.errors import DocumentInvalid
from tests.accuracy_rows import csv_text, rows_of


def test_a_row_keeps_what_is_said_and_none_for_the_rest() -> None:
    (row,) = rows_of({})
    assert (row.layers, row.tp, row.cp, row.params_b, row.zero_or_fsdp) == (32, 2, None, 8.03, "")


@pytest.mark.parametrize("prefix", ["\ufeff", ""])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_byte_order_mark_and_line_endings_do_not_matter(prefix: str, ending: str) -> None:
    text = prefix + csv_text({}, {}).replace("\n", ending)
    assert [row.id for row in read_truth(text, "x")] == ["run-0", "run-1"]


def test_order_of_columns_and_further_columns_do_not_matter() -> None:
    lines = [line.split(",") for line in csv_text({}).splitlines()]
    turned = "\n".join(",".join([*reversed(cells), "more"]) for cells in lines)
    assert read_truth(turned, "x") == read_truth(csv_text({}), "x")


def test_every_missing_column_is_named() -> None:
    header = ",".join(name for name in COLUMNS if name not in ("gbs", "precision"))
    with pytest.raises(DocumentInvalid, match="missing columns: precision, gbs"):
        read_truth(header + "\n", "truth.csv")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gbs": "many"}, "line 2: gbs = 'many' is not a number"),
        ({"tp": "1.5"}, "line 2: tp = 1.5 is not a whole number"),
        ({"step_time_s": "nan"}, "line 2: step_time_s = nan is out of range"),
        ({"step_time_s": "inf"}, "out of range"),
        ({"step_time_s": "-1"}, "out of range"),
        ({"step_time_s": "0"}, "out of range"),
        ({"dp": "0"}, "line 2: dp = 0 is out of range"),
        ({"layers": "1e300"}, "out of range"),
        ({"device": ""}, "line 2: device is blank"),
    ],
)
def test_an_impossible_cell_is_named(change: dict[str, str], message: str) -> None:
    with pytest.raises(DocumentInvalid, match=message):
        rows_of(change)


def test_all_impossible_cells_come_in_one_error() -> None:
    with pytest.raises(DocumentInvalid) as caught:
        rows_of({"tp": "x"}, {"pp": "y"}, {"id": "same"}, {"id": "same"})
    for part in ("line 2: tp", "line 3: pp", "line 5: id 'same' was used on line 4"):
        assert part in caught.value.what


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "empty"), ("\n\n", "empty"), (",".join(COLUMNS) + "\n", "no rows"), ('id,"unfinished\n', "not a CSV")],
)
def test_files_without_rows_are_refused(text: str, message: str) -> None:
    with pytest.raises(DocumentInvalid, match=message):
        read_truth(text, "truth.csv")


def test_a_line_with_another_number_of_cells_is_refused() -> None:
    with pytest.raises(DocumentInvalid, match="line 3: 1 cells"):
        read_truth(csv_text({}) + "short\n", "truth.csv")


def test_step_time_comes_from_the_token_rate_where_it_is_not_stated() -> None:
    (row,) = rows_of({"step_time_s": "", "tokens_per_s_per_device": "8192"})
    assert row.measured_step_s == pytest.approx(32 * 8192 / (16 * 8192))


def test_only_rows_without_a_measurement_died_of_memory() -> None:
    died, ran = rows_of({"step_time_s": "", "notes": "OOM; batch_accum=4"}, {"notes": "mbs 2 goes OOM"})
    assert (died.out_of_memory, ran.out_of_memory) == (True, False)


@pytest.mark.parametrize(
    ("notes", "contradictory"),
    [
        ("derived; FLAG[A:TP*CP*PP*DP=640!=num_devices=320]", True),
        ("FLAG sample may be from another precision", True),
        ("FLAG[D:TFLOPs/peak=38.0% vs mfu=44.32%]", False),
        ("FLAG world size not in the repository", False),
        ("FLAGged if DP != GPUs/(TP*PP)", False),
        ("", False),
    ],
)
def test_flags_of_numbers_that_we_use_mark_a_contradiction(notes: str, contradictory: bool) -> None:
    (row,) = rows_of({"notes": notes})
    assert bool(row.contradiction) is contradictory
