"""The CSV reader: what it understands, what it refuses, and where it says the fault is."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importing.csv_rows import MAX_COLUMNS, head_rows, open_csv
from profiles.importing.imported import Imported
from profiles.importing.number_cells import finite_number, whole_number
from tests.importing import written


def test_mark_crlf_quotes_and_line_numbers(tmp_path: Path) -> None:
    file = written(tmp_path, "t.csv", b'\xef\xbb\xbfname, time\r\n\r\n"a, b",1.5\r\n"two\r\nlines",2\r\nc,3\r\n')
    imported = Imported("test")
    table = open_csv(file, required=("name", "time"))
    rows = list(table.rows(imported))
    assert table.header == ("name", "time")
    assert table.header_line == 1
    assert [(row.line, row["name"], row.number("time")) for row in rows] == [
        (3, "a, b", 1.5),
        (4, "two\nlines", 2.0),
        (6, "c", 3.0),
    ]
    assert imported.bad_rows == []
    assert rows[0]["absent"] == ""
    assert rows[0].optional_whole("absent") is None


def test_wrong_width_is_a_bad_row_and_an_empty_last_column_is_not(tmp_path: Path) -> None:
    file = written(tmp_path, "t.csv", "a,b,\n1,2,\n3,4\n5,6,7,8\n9\n")
    imported = Imported("test")
    assert [row.cells[:2] for row in open_csv(file).rows(imported)] == [("1", "2"), ("3", "4")]
    assert [bad.where for bad in imported.bad_rows] == ["line 4", "line 5"]


def test_the_header_may_stand_behind_other_lines(tmp_path: Path) -> None:
    file = written(tmp_path, "t.csv", "==PROF== Connected\nnote\nid;time\n1;2\n")
    table = open_csv(file, delimiter=";", is_header=lambda cells: "time" in cells)
    assert table.header_line == 3
    assert [row.whole("time") for row in table.rows(Imported("test"))] == [2]


def test_too_many_columns_are_one_error(tmp_path: Path) -> None:
    file = written(tmp_path, "t.csv", "a," * 1_000_000 + "\n")
    with pytest.raises(DocumentInvalid) as error:
        open_csv(file)
    assert "1,000,001 columns" in error.value.what
    assert str(error.value.where).endswith("t.csv:1")
    ok = written(tmp_path, "u.csv", ",".join(["a"] * MAX_COLUMNS) + "\n")
    assert len(open_csv(ok).header) == MAX_COLUMNS


@pytest.mark.parametrize("content", ['a,b\n1,"' + "x" * 200_000, "\n\n \n", ""])
def test_unclosed_quotes_and_files_without_header_are_refused(tmp_path: Path, content: str) -> None:
    file = written(tmp_path, "t.csv", content)
    with pytest.raises(DocumentInvalid):
        list(open_csv(file).rows(Imported("test")))


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="'time'"):
        open_csv(written(tmp_path, "t.csv", "a,b\n"), required=("a", "time"))


def test_head_rows_never_raise(tmp_path: Path) -> None:
    assert head_rows(written(tmp_path, "t", "a, b\n\n1,2\n").head(), limit=2) == [["a", "b"], ["1", "2"]]
    assert head_rows(written(tmp_path, "u", '"' + "x\n" * 99).head()) != [["a"]]
    assert head_rows(written(tmp_path, "v", b"\0\1\2").head()) == []


@pytest.mark.parametrize("text", ["nan", "inf", "1e999", "1_000", "", "12x", "1,5", "\u0663", "9" * 500])
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        finite_number(text)


def test_numbers() -> None:
    assert finite_number(" 1.5e-3 ") == 0.0015
    assert finite_number("1,234.5", thousands=True) == 1234.5
    assert whole_number("128.0") == 128
    assert whole_number("1,024", thousands=True) == 1024
    assert whole_number("9007199254740993") == 9007199254740993
    for text in ("1.5", "1e30", "99999999999999999999"):
        with pytest.raises(ValueError, match="number"):
            whole_number(text)
