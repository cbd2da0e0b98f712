"""Headers that every answer carries: pages may load their own parts, data may load nothing, nobody may frame either."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from api.envelope import Envelope
from api.telemetry.metrics import Metrics


async def page(request: Request) -> Response:
    return HTMLResponse("<p>")


async def data(request: Request) -> Response:
    return JSONResponse({})


async def own(request: Request) -> Response:
    return HTMLResponse(
        "<p>", headers={"content-security-policy": "default-src 'self' x", "cache-control": "max-age=9"}
    )


async def broken(request: Request) -> Response:
    raise RuntimeError("secret")


ROUTES = [Route("/page", page), Route("/data", data), Route("/own", own), Route("/broken", broken)]
APP = Starlette(routes=ROUTES, middleware=[Middleware(Envelope, metrics=Metrics())])
CLIENT = TestClient(APP, raise_server_exceptions=False)


@pytest.mark.parametrize("path", ["/page", "/data", "/own", "/broken", "/nowhere"])
def test_every_answer_has_safe_headers(path: str) -> None:
    headers = CLIENT.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["x-request-id"]
    assert "set-cookie" not in headers


def test_a_page_may_load_its_own_parts_only() -> None:
    policy = CLIENT.get("/page").headers["content-security-policy"]
    assert policy.startswith("default-src 'self';")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert CLIENT.get("/data").headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert CLIENT.get("/nowhere").headers["cache-control"] == "no-store"
    opener = [CLIENT.get(path).headers["cross-origin-opener-policy"] for path in ("/page", "/data")]
    assert opener == ["same-origin-allow-popups", "same-origin"]
    mine = CLIENT.get("/own").headers
    assert (mine["content-security-policy"], mine["cache-control"]) == ("default-src 'self' x", "max-age=9")


def test_a_mistake_tells_nothing() -> None:
    response = CLIENT.get("/broken", headers={"x-request-id": "r1"})
    assert (response.status_code, response.json()["request_id"]) == (500, "r1")
    assert "secret" not in response.text


@pytest.mark.parametrize("sent", ["", "a b", "a\tb", "x" * 65, "a;b", "<script>", "../x/"])
def test_a_request_id_is_harmless_or_ours(sent: str) -> None:
    given = CLIENT.get("/data", headers={"x-request-id": sent}).headers["x-request-id"]
    assert given != sent
    assert given.isalnum()
