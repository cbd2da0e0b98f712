"""HEAD of what GET answers: its status and headers, and no body."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from api.http.head_requests import HeadAsGet


async def shown(request: Request) -> Response:
    return PlainTextResponse("twelve bytes", headers={"etag": request.method})


def test_a_head_is_a_get_without_its_body() -> None:
    routes = [Route("/v1/plans", shown, methods=["GET"]), Route("/v1/jobs/x/events", shown, methods=["POST"])]
    app = Starlette(routes=routes)
    app.add_middleware(HeadAsGet)
    client = TestClient(app)
    answer = client.head("/v1/plans")
    assert (answer.status_code, answer.content, answer.headers["content-length"]) == (200, b"", "12")
    assert answer.headers["etag"] == "GET"
    assert client.head("/v1/jobs/x/events").status_code == 405
    assert client.get("/v1/plans").text == "twelve bytes"
