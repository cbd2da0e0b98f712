"""Shared computations end with the last who waits, and what nobody waits for any more ends."""

from __future__ import annotations

import asyncio

import pytest
from starlette.requests import ClientDisconnect, Request

from api.http.departures import while_connected
from api.solving.flights import Flights


class Work:
    """A computation that ends when it is told to."""

    def __init__(self) -> None:
        self.begun, self.cancelled, self.end = 0, 0, asyncio.Event()

    async def __call__(self) -> int:
        self.begun += 1
        try:
            await self.end.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return self.begun


def request_of(*messages: str) -> Request:
    """A request whose client sends these messages and then nothing more."""
    waiting = list(messages)

    async def receive() -> dict[str, str]:
        if waiting:
            return {"type": waiting.pop(0)}
        await asyncio.Event().wait()
        raise AssertionError

    return Request({"type": "http"}, receive)


def test_it_goes_on_while_one_waits_and_ends_with_the_last() -> None:
    async def scene() -> None:
        flights, work = Flights[int](), Work()
        first, second = (asyncio.ensure_future(flights.share("k", work)) for _ in range(2))
        await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.sleep(0.01)
        assert (work.begun, work.cancelled, second.done()) == (1, 0, False)
        second.cancel()
        await asyncio.sleep(0.01)
        assert work.cancelled == 1
        work.end.set()
        assert await flights.share("k", work) == (2, False), "asked anew, it begins anew"

    asyncio.run(scene())


def test_an_answer_that_is_kept_is_computed_to_its_end() -> None:
    async def scene() -> None:
        flights, work = Flights[int](goes_on=True), Work()
        asked = asyncio.ensure_future(flights.share("k", work))
        await asyncio.sleep(0.01)
        asked.cancel()
        await asyncio.sleep(0.01)
        work.end.set()
        assert await flights.share("k", work) == (1, True)

    asyncio.run(scene())


def test_work_ends_when_its_client_has_gone() -> None:
    async def scene() -> None:
        work = Work()
        with pytest.raises(ClientDisconnect):
            await while_connected(request_of("http.request", "http.disconnect"), work())
        assert work.cancelled == 1
        work.end.set()
        assert await while_connected(request_of("http.request"), work()) == 2

    asyncio.run(scene())


def test_the_work_s_own_error_reaches_the_client() -> None:
    async def fail() -> int:
        raise ValueError("its own")

    with pytest.raises(ValueError, match="its own"):
        asyncio.run(while_connected(request_of("http.request"), fail()))
