"""Work that ends when the client who asked for it has gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.requests import ClientDisconnect, Request

T = TypeVar("T")


async def while_connected(request: Request, work: Awaitable[T]) -> T:
    """What ``work`` gives; it is cancelled when the connection ends first.  Raises ClientDisconnect then.

    The request's body must have been read.
    """
    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(_departure(request))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnect
    finally:
        gone.cancel()
        working.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


async def _departure(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
