"""Compressed answers: a large body is packed for a client that accepts gzip (RFC 9110, section 12.5.3)."""

from __future__ import annotations

import gzip
from collections.abc import Mapping

from anyio import to_thread
from fastapi import Request, Response

LEAST_BYTES = 32 * 1024
"""Below this a packet or two are saved, and no time."""
FAST = 1
"""Columns of numbers shrink to a third at any level; higher ones only take longer."""


def takes_gzip(request: Request) -> bool:
    """Whether the client asks for gzip, and does not rule it out with ``q=0``."""
    for part in request.headers.get("accept-encoding", "").lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() == "gzip":
            return weight.strip().replace(" ", "") not in {"q=0", "q=0.0", "q=0.00", "q=0.000"}
    return False


async def large_response(request: Request, content: bytes, headers: Mapping[str, str], media_type: str) -> Response:
    """The response with ``content``; packed outside the event loop where that is worth it and wanted."""
    vary = ", ".join(filter(None, (headers.get("Vary"), "Accept-Encoding")))
    sent = {**headers, "Vary": vary}
    if len(content) < LEAST_BYTES or not takes_gzip(request):
        return Response(content, headers=sent, media_type=media_type)
    packed = await to_thread.run_sync(lambda: gzip.compress(content, FAST, mtime=0))
    return Response(packed, headers={**sent, "Content-Encoding": "gzip"}, media_type=media_type)
