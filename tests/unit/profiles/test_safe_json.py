"""What the JSON reader understands, and what it refuses with a place and a repair."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiles.errors import DocumentInvalid
from profiles.safe_json import load_json_text

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=50, deadline=None)
@given(values, st.booleans())
def test_every_valid_document_is_read_as_the_standard_library_reads_it(value: object, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert load_json_text(text, "f") == json.loads(text)


def test_the_same_key_in_different_objects_is_fine() -> None:
    assert load_json_text('{"a": {"b": 1}, "b": [{"b": "b"}, {"b": 2}]}', "f")["b"][1] == {"b": 2}


REFUSED = [
    ('{"a": 1,\n "a": 2}', "key 'a' appears twice", "f:2:2"),
    ('{"\\u0061": 1, "a": 2}', "key 'a' appears twice", "f:1:15"),
    ('{"a": NaN}', "NaN is not a finite number", "f:1:7"),
    ("[1, -Infinity]", "-Infinity is not a finite number", "f:1:5"),
    ("[1e999]", "1e999 is too large", "f:1:2"),
    ("[" + "9" * 400 + "]", "integer is too long", "f:1:2"),
    ('["\\ud800"]', "surrogate", "f:1:2"),
    ('{"\\udfff": 1}', "surrogate", "f:1:2"),
    ("[" * 51 + "]" * 51, "nested deeper", "f:1:51"),
    ('{"a":1,}', "not valid JSON", "f:1:8"),
    ("{'a': 1}", "not valid JSON", "f:1:2"),
    ('{"a": 1} // note', "not valid JSON", "f:1:10"),
    ("", "not valid JSON", "f:1:1"),
    ('["unended', "not valid JSON", "f:1:2"),
]


@pytest.mark.parametrize(("text", "what", "where"), REFUSED, ids=[what for _, what, _ in REFUSED])
def test_refused_with_place_and_repair(text: str, what: str, where: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        load_json_text(text, "f")
    assert what in caught.value.what
    assert caught.value.where == where
    assert caught.value.hint


def test_hostile_text_costs_linear_time() -> None:
    started = time.process_time()
    for text in ('["' + '\\"' * 300_000, "[" + '"' * 300_000, "-" * 300_000):
        with pytest.raises(DocumentInvalid):
            load_json_text(text, "f")
    assert time.process_time() - started < 5.0
