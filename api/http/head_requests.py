"""HEAD: every GET of the interface without its body (RFC 9110, section 9.3.2)."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_INTERFACE, _STREAMS = "/v1/", "/events"


def answers_head(path: str) -> bool:
    """Whether HEAD is answered where GET is: not by streams, whose answer has no end of its own."""
    return path.startswith(_INTERFACE) and not path.endswith(_STREAMS)


class HeadAsGet:
    """ASGI middleware: a HEAD request is answered as GET, and the body is left out.

    The pages have routes of their own for it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["method"] != "HEAD" or not answers_head(scope["path"]):
            await self.app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            # The server looks at the method when the answer begins: it sends no body, and expects none.
            scope["method"] = "HEAD"
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        scope["method"] = "GET"
        await self.app(scope, receive, send_head)
