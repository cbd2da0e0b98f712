"""Addresses, keys, waits and events, each by itself."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from api.client.address import checked_address, checked_key, is_loopback
from api.client.events import parse_events
from api.client.patience import Patience, parse_retry_after
from planner.errors import DocumentInvalid


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("http://127.0.0.1:8642", "http://127.0.0.1:8642"),
        ("https://plans.example.org/", "https://plans.example.org"),
        ("https://example.org/meshwright/", "https://example.org/meshwright"),
        ("http://[::1]:8642", "http://[::1]:8642"),
    ],
)
def test_good_addresses(url: str, kept: str) -> None:
    assert checked_address(url) == kept


@pytest.mark.parametrize(
    "url",
    [
        *("", "localhost:8642", "ftp://x", "http://", "http://h:port", "http://h:99999", "file:///etc/passwd"),
        *("http://user:secret@host", "http://h?a=1", "http://h#x", "http://h /", "http://h\n", "http://[::1"),
    ],
)
def test_bad_addresses_are_one_error_that_shows_no_password(url: str) -> None:
    with pytest.raises(DocumentInvalid) as wrong:
        checked_address(url)
    assert wrong.value.hint
    assert "secret" not in str(wrong.value)


def test_loopback_is_this_machine() -> None:
    assert [is_loopback(f"http://{host}:1") for host in ("localhost", "127.0.0.1", "[::1]", "10.0.0.1")] == [
        *(True, True, True, False)
    ]


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MESHWRIGHT_API_KEY", raising=False)
    assert checked_key(None) is None
    monkeypatch.setenv("MESHWRIGHT_API_KEY", "  \n")
    assert checked_key(None) is None
    monkeypatch.setenv("MESHWRIGHT_API_KEY", "mw_a.b\n")
    assert checked_key(None) == "mw_a.b"
    assert checked_key("mw_c.d") == "mw_c.d"
    for bad in ("a b", "ä", "x\r\nHost: other"):
        with pytest.raises(DocumentInvalid) as wrong:
            checked_key(bad)
        assert bad not in str(wrong.value)


def test_waits_double_are_spread_and_bounded() -> None:
    patience = Patience(retries=12, longest_wait_s=5.0)
    for attempt in range(1, 13):
        wait_s = patience.wait_s(attempt, None)
        assert wait_s is not None
        full_s = min(0.25 * 2 ** (attempt - 1), 5.0)
        assert full_s / 2 <= wait_s <= full_s
    assert patience.wait_s(13, None) is None
    assert patience.wait_s(1, 4.0) == 4.0
    assert patience.wait_s(1, 6.0) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        (" 0 ", 0.0),
        ("Mon, 23 Nov 2026 03:00:30 GMT", 30.0),
        ("Mon, 23 Nov 2026 02:00:00 GMT", 0.0),
        ("soon", None),
        ("-3", None),
        ("1" * 40, None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_a_number_or_a_moment(text: str | None, seconds: float | None) -> None:
    assert parse_retry_after(text, datetime(2026, 11, 23, 3, 0, tzinfo=UTC)) == seconds


def test_events_are_read_whole() -> None:
    event = '{"seq": 1, "at": "2026-11-23T00:00:00Z", "status": "queued", "progress": {"phase": "queued"}}'
    half = event.index(",") + 1
    lines = [
        *(": still here", "", "id: 1", "event: queued", f"data: {event}", ""),
        *("id: 2", f"data:{event[:half]}", f"data: {event[half:]}", "", f"data: {event}"),
    ]
    assert [(each.seq, each.status) for each in parse_events(lines)] == [(1, "queued")] * 2
