"""A body is packed for who wants it, and only where that is worth it."""

from __future__ import annotations

import asyncio
import gzip

import pytest
from fastapi import Request, Response

from api.http.packing import LEAST_BYTES, large_response, takes_gzip

LARGE = b"0123456789" * LEAST_BYTES


def request(accepted: str | None) -> Request:
    headers = [] if accepted is None else [(b"accept-encoding", accepted.encode())]
    return Request({"type": "http", "headers": headers})


def sent(content: bytes, accepted: str | None, **headers: str) -> Response:
    return asyncio.run(large_response(request(accepted), content, headers, "application/json"))


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [
        ("gzip", True),
        ("br, GZIP;q=0.5", True),
        ("deflate, gzip", True),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("x-gzip, br", False),
        ("", False),
        (None, False),
    ],
)
def test_a_client_says_what_it_unpacks(accepted: str | None, takes: bool) -> None:
    assert takes_gzip(request(accepted)) is takes


def test_a_large_body_is_packed_and_caches_are_told() -> None:
    found = sent(LARGE, "gzip", Vary="Accept", ETag='"1"')
    assert gzip.decompress(bytes(found.body)) == LARGE
    assert found.headers["content-encoding"] == "gzip"
    assert found.headers["vary"] == "Accept, Accept-Encoding"
    assert found.headers["etag"] == '"1"'
    assert int(found.headers["content-length"]) == len(found.body) < len(LARGE)


@pytest.mark.parametrize(("content", "accepted"), [(LARGE[: LEAST_BYTES - 1], "gzip"), (LARGE, "identity")])
def test_a_small_body_or_one_for_somebody_else_goes_as_it_is(content: bytes, accepted: str) -> None:
    found = sent(content, accepted)
    assert found.body == content
    assert "content-encoding" not in found.headers
    assert found.headers["vary"] == "Accept-Encoding"
