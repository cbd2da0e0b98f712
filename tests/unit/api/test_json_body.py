"""A body is read strictly: what one layer would choke on is refused at the door, quickly and with a place."""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.http.json_body import MAX_DEPTH, parse_json
from planner.errors import DocumentInvalid

MALFORMED: dict[str, tuple[bytes, str]] = {
    "nan": (b'{"a": NaN}', "NaN"),
    "infinity": (b'{"a": -Infinity}', "Infinity"),
    "too large a float": (b'{"a": 1e999}', "too large"),
    "a long mantissa": (b'{"a": ' + b"9" * 400 + b".0e9}", "too large"),
    "duplicate key": (b'{"a": 1, "a": 2}', "twice"),
    "duplicate key by escape": (b'{"a": 1, "\\u0061": 2}', "twice"),
    "duplicate key deep inside": (b'[{"x": [{"b": 1, "b": 1}]}]', "twice"),
    "nul escaped": (b'{"a": "x\\u0000y"}', "U+0000"),
    "nul in a key": (b'{"x\\u0000": 1}', "U+0000"),
    "lone surrogate": (b'{"a": "\\ud800"}', "surrogate"),
    "reversed pair": (b'{"a": "\\udc00\\ud800"}', "surrogate"),
    "surrogate in utf-8": (b'{"a": "\xed\xa0\x80"}', "UTF-8"),
    "bad utf-8": (b'{"a": "\xff"}', "UTF-8"),
    "utf-16": ('{"a": 1}'.encode("utf-16"), "UTF-8"),
    "deep arrays": (b"[" * 100_000, "nested deeper"),
    "deep and closed": (b"[" * 65 + b"]" * 65, "nested deeper"),
    "deep objects": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "nested deeper"),
    "huge integer": (b'{"a": ' + b"7" * 5_000 + b"}", "64 bits"),
    "just over": (b'{"a": 9223372036854775808}', "64 bits"),
    "just under": (b'{"a": -9223372036854775809}', "64 bits"),
    "empty": (b"", "empty"),
    "spaces": (b"  \n", "empty"),
    "trailing": (b'{"a": 1} x', "not valid JSON"),
    "comment": (b'{"a": 1} // x', "not valid JSON"),
    "single quotes": (b"{'a': 1}", "not valid JSON"),
    "raw nul": (b'{"a": "\x00"}', "not valid JSON"),
    "cut": (b'{"a": ', "not valid JSON"),
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())
def test_the_malformed_corpus_is_refused(body: tuple[bytes, str]) -> None:
    content, words = body
    start_s = time.process_time()
    with pytest.raises(DocumentInvalid, match=re.escape(words)) as caught:
        parse_json(content)
    assert caught.value.http_status == 422
    assert len(str(caught.value)) < 400, "what was sent is not repeated"
    assert time.process_time() - start_s < 5


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"a": 9223372036854775807, "b": -9223372036854775808}', {"a": 2**63 - 1, "b": -(2**63)}),
        (b'{"a": "\\ud83d\\ude00"}', {"a": "\N{GRINNING FACE}"}),
        (b'{"a": "\\\\u0000"}', {"a": "\\u0000"}),
        (b'\xef\xbb\xbf{"a": 1e308}', {"a": 1e308}),
        (b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, None),
    ],
)
def test_unusual_but_sound_bodies_are_read(body: bytes, value: Any) -> None:
    assert value is None or parse_json(body) == value


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(plain, st.booleans())
def test_every_sound_value_is_read_as_it_was_written(value: Any, ascii_only: bool) -> None:
    assert parse_json(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    with suppress(DocumentInvalid):
        json.dumps(parse_json(body), allow_nan=False).encode()
