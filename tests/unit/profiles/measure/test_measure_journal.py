"""The journal: finished cases survive, a torn last line is dropped, anything else is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid, NotFound
from profiles.measure.case import key_of
from profiles.measure.resume import Journal


def test_what_was_recorded_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.record("a", {"time_s": 1.5})
        journal.record("b", {"time_s": 2.5})
    with Journal(path) as again:
        assert again.finished == {"a": {"time_s": 1.5}, "b": {"time_s": 2.5}}
        again.record("c", {})
    with Journal(path) as third:
        assert list(third.finished) == ["a", "b", "c"]


@pytest.mark.parametrize("torn", ['{"case": "b", "observ', '{"case"', "{"])
def test_a_torn_last_line_is_cut_off(tmp_path: Path, torn: str) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.record("a", 1)
    whole = path.read_bytes()
    path.write_bytes(whole + torn.encode())
    with Journal(path) as again:
        assert again.finished == {"a": 1}
        assert path.read_bytes() == whole
        again.record("b", 2)
    with Journal(path) as third:
        assert third.finished == {"a": 1, "b": 2}


@pytest.mark.parametrize("line", ["not json", '{"other": 1}', "[1, 2]", "3"])
def test_a_file_that_is_no_journal_is_refused_untouched(tmp_path: Path, line: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(f'{{"case": "a", "observation": 1}}\n{line}\nmore', encoding="utf-8")
    before = path.read_bytes()
    with pytest.raises(DocumentInvalid) as refused:
        Journal(path)
    assert refused.value.where == f"{path}:2"
    assert path.read_bytes() == before


def test_a_missing_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Journal(tmp_path / "nowhere" / "journal.jsonl")


def test_without_a_file_it_only_remembers() -> None:
    with Journal() as journal:
        journal.record("a", 1)
        assert journal.finished == {"a": 1}


def test_a_key_depends_on_case_and_environment() -> None:
    keys = {key_of({"m": 1}, "x"), key_of({"m": 2}, "x"), key_of({"m": 1}, "y")}
    assert len(keys) == 3
    assert key_of({"m": 1, "n": 2}, "x") == key_of({"n": 2, "m": 1}, "x")
