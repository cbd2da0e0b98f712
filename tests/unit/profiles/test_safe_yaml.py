"""What the YAML reader understands, and what it refuses with a place and a repair."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid, NotFound
from profiles.safe_yaml import load_document_file, load_yaml_text


def test_core_schema_scalars() -> None:
    text = "[1, -2, 2.5, 1e3, .5, 0x1F, 0o17, ~, null, true, False, yes, on, '5', \"1e3\", 2024-01-01, 1_000, 12:30]"
    assert load_yaml_text(text, "f") == [
        1, -2, 2.5, 1000.0, 0.5, 31, 15, None, None, True, False,
        "yes", "on", "5", "1e3", "2024-01-01", "1_000", "12:30",
    ]  # fmt: skip


def test_nested_blocks_keep_their_order() -> None:
    data = load_yaml_text("b:\n  - x: 1\n    y: [2, {z: 3}]\na: |\n  two\n  lines\n", "f")
    assert data == {"b": [{"x": 1, "y": [2, {"z": 3}]}], "a": "two\nlines\n"}
    assert list(data) == ["b", "a"]


def test_an_empty_document_is_nothing() -> None:
    assert load_yaml_text("", "f") is None
    assert load_yaml_text("# only a comment\n", "f") is None


def test_a_merge_key_is_an_ordinary_key() -> None:
    assert load_yaml_text("<<: {a: 1}", "f") == {"<<": {"a": 1}}


REFUSED = [
    ("a: &x 1", "anchor &x", "f:1:4"),
    ("a: &x\n  b: 1", "anchor &x", "f:1:4"),
    ("a: 1\nb: *a", "alias *a", "f:2:4"),
    ("a: !!python/object/apply:os.system [ls]", "tag", "f:1:4"),
    ("a: !!str 1", "tag", "f:1:4"),
    ("a: 1\nb: 2\na: 3", "key 'a' appears twice", "f:3:1"),
    ("a: {b: 1, b: 2}", "key 'b' appears twice", "f:1:11"),
    ("a: 1\n---\nb: 2", "several documents", "f:2:1"),
    ("a: .inf", "not a finite number", "f:1:4"),
    ("a: -.INF", "not a finite number", "f:1:4"),
    ("a: .nan", "not a finite number", "f:1:4"),
    ("a: 1e999", "too large", "f:1:4"),
    ("a: " + "9" * 400, "integer is too long", "f:1:4"),
    ("[" * 51 + "]" * 51, "nested deeper", "f:1:51"),
    ("1: 2", "key 1 is not text", "f:1:1"),
    ("? [a]\n: 1", "key a collection is not text", "f:1:3"),
    ("a: [1, 2", "not valid YAML", "f:1:9"),
    ("a:\n\tb: 1", "not valid YAML", "f:2:1"),
    ("a: b: c", "not valid YAML", "f:1:5"),
    ("%YAML 1.1\n---\na: 1", "YAML 1.1 is asked for", "f:2:1"),
    ("%TAG ! tag:x,2000:\n---\na: 1", "%TAG is not allowed", "f:2:1"),
    ("a: 1\nb: \x01", "control character", "f:2:1"),
    ("a: \ud800", "surrogate", "f:1:4"),
]


@pytest.mark.parametrize(("text", "what", "where"), REFUSED, ids=[what for _, what, _ in REFUSED])
def test_refused_with_place_and_repair(text: str, what: str, where: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        load_yaml_text(text, "f")
    assert what in caught.value.what
    assert caught.value.where == where
    assert caught.value.hint
    assert caught.value.__cause__ is None


def test_the_deepest_allowed_nesting_is_read() -> None:
    assert load_yaml_text("[" * 50 + "]" * 50, "f")


def test_huge_documents_are_refused_before_they_are_parsed() -> None:
    started = time.process_time()
    with pytest.raises(DocumentInvalid, match="bytes; at most"):
        load_yaml_text("a: 1 #" + "x" * 5_000_001, "f")
    assert time.process_time() - started < 1.0


def test_a_file_is_read_by_its_suffix(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: yes\n", encoding="utf-8")
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert load_document_file(tmp_path / "a.yaml") == {"a": "yes"}
    assert load_document_file(tmp_path / "a.json") == {"a": 1}


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no file"):
        load_document_file(tmp_path / "missing.yaml")
    with pytest.raises(DocumentInvalid, match="cannot be read"):
        load_document_file(tmp_path)
    (tmp_path / "binary.yaml").write_bytes(b"a: \xff\xfe")
    with pytest.raises(DocumentInvalid, match="byte 3 is not UTF-8"):
        load_document_file(tmp_path / "binary.yaml")
