from __future__ import annotations

import pytest

from planner.backends.folders.edits import edited_keys, keyed


@pytest.mark.parametrize(
    ("name", "was", "now", "said"),
    [
        ("a.json", '{"a": {"b": [1, 2]}}', '{"a": {"b": [1, 3]}}', ("/a/b/1: 3, emitted as 2",)),
        ("a.json", '{"a": 1}', '{"a": 1, "b": {}}', ("/b: {}, emitted as absent",)),
        ("a.yaml", "a:\n  b: x\n", "a:\n  c: x\n", ('/a/b: absent, emitted as "x"', '/a/c: "x", emitted as absent')),
        ("a.yaml", "a: 1\n---\nb: 2\n", "a: 1\n---\nb: 3\n", ("#1/b: 3, emitted as 2",)),
        ("a.toml", "[t]\nk = 1\n", "[t]\nk = 2\n", ("/t/k: 2, emitted as 1",)),
        ("m.args", "# x\n--tp 1\n--sp\n", "--tp 2\n", ("--tp: 2, emitted as 1", "--sp: absent, emitted as set")),
        ("t.sh", "a\nb\n", "a\nc\n", ("line 2: c, emitted as b",)),
    ],
)
def test_the_key_is_what_a_reader_of_the_format_would_name(
    name: str, was: str, now: str, said: tuple[str, ...]
) -> None:
    assert edited_keys(name, was, now) == said


@pytest.mark.parametrize(
    ("name", "text"), [("a.json", "{"), ("a.json", "[" * 100_000), ("a.yaml", "a: [\n"), ("a.toml", "= 1\n")]
)
def test_a_broken_file_is_compared_by_line(name: str, text: str) -> None:
    assert set(keyed(name, text)) == {"line 1"}


def test_many_edits_are_counted() -> None:
    was = "".join(f"{number}\n" for number in range(50))
    said = edited_keys("a.txt", was, was.replace("\n", "x\n"))
    assert len(said) == 9
    assert said[-1] == "and 42 more"


def test_a_comment_is_no_key() -> None:
    assert edited_keys("m.args", "# a\n--tp 1\n", "# b\n--tp 1\n") == ()
