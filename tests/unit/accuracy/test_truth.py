"""Reading measured runs: what is accepted, and that everything wrong is said at once."""

from __future__ import annotations

import pytest

from planner.errors import DocumentInvalid
from planner.evidence.runs.prediction import predict_rows
from planner.evidence.runs.truth import COLUMNS, read_truth
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


IMPOSSIBLE = [
    ({"gbs": "many"}, "gbs = 'many' is not a number"),
    ({"tp": "1.5"}, "tp = 1.5 is not a whole number"),
    ({"step_time_s": "nan"}, "step_time_s = nan is out of range"),
    ({"step_time_s": "inf"}, "step_time_s = inf is out of range"),
    ({"step_time_s": "-1"}, "step_time_s = -1 is out of range"),
    ({"step_time_s": "0"}, "step_time_s = 0 is out of range"),
    ({"dp": "0"}, "dp = 0 is out of range"),
    ({"layers": "1e300"}, "layers = 1e300 is out of range"),
    ({"device": ""}, "device is blank"),
    ({"id": "", "model": ""}, "id is blank, model is blank"),
]


@pytest.mark.parametrize(("change", "reason"), IMPOSSIBLE)
def test_a_row_with_an_impossible_cell_is_left_out_with_the_reason(change: dict[str, str], reason: str) -> None:
    _, broken, _ = rows_of({}, change, {})
    assert (broken.defect, broken.contradiction) == (reason, reason)
    assert broken.line == 3
    predictions, unmapped = predict_rows(rows_of({}, change, {}))
    assert [each.row.line for each in predictions] == [2, 4]
    assert [each.reason for each in unmapped] == [reason]


def test_unreadable_cells_are_unknown_and_a_nameless_row_is_called_by_its_line() -> None:
    _, row = rows_of({}, {"id": "", "step_time_s": "nan", "layers": "-3"})
    assert (row.id, row.step_time_s, row.layers, row.measured_step_s) == ("line 3", None, None, None)


def test_a_file_of_nothing_but_impossible_rows_names_them_all() -> None:
    with pytest.raises(DocumentInvalid) as caught:
        rows_of({"tp": "x"}, {"pp": "y"})
    for part in ("line 2: tp = 'x' is not a number", "line 3: pp = 'y' is not a number"):
        assert part in caught.value.what


def test_a_repeated_id_is_an_error_because_ids_name_rows() -> None:
    with pytest.raises(DocumentInvalid, match="line 4: id 'same' was used on line 3"):
        rows_of({}, {"id": "same"}, {"id": "same"})


def test_a_huge_cell_is_refused_or_cut_in_the_message() -> None:
    (_, row) = rows_of({}, {"gbs": "9" * 100_000})
    assert row.defect == f"gbs = {'9' * 40} is out of range"
    with pytest.raises(DocumentInvalid, match="not a CSV file: field larger"):
        rows_of({"notes": "x" * 200_000})


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "empty"), ("\n\n", "empty"), (",".join(COLUMNS) + "\n", "no rows"), ('id,"unfinished\n', "not a CSV")],
)
def test_files_without_rows_are_refused(text: str, message: str) -> None:
    with pytest.raises(DocumentInvalid, match=message):
        read_truth(text, "truth.csv")


def test_a_line_with_another_number_of_cells_is_left_out() -> None:
    _, row = read_truth(csv_text({}) + "short\n", "truth.csv")
    assert (row.id, row.line, row.model) == ("short", 3, "")
    assert row.defect.startswith("1 cells under ")


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
