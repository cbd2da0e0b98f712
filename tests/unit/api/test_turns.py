"""Turns at the computing processes are shared out fairly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from api.solving.turns import Turns


def order_of(size: int, most: int, callers: str) -> str:
    """Who gets a turn, in order, when ``callers`` ask in this order."""
    got: list[str] = []

    async def ask(turns: Turns, caller: str) -> None:
        await turns.take(caller)
        got.append(caller)
        await asyncio.sleep(0.001)
        turns.give_back(caller)

    async def all_ask() -> None:
        turns = Turns(size, most)
        await asyncio.gather(*(ask(turns, caller) for caller in callers))

    asyncio.run(all_ask())
    return "".join(got)


def run(scene: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(scene())  # type: ignore[arg-type]  # an async function's call is a coroutine


def test_one_question_does_not_stand_behind_many_of_another() -> None:
    assert order_of(2, 2, "aaaaaab") == "aabaaaa"


def test_one_caller_leaves_a_process_to_the_others() -> None:
    async def scene() -> None:
        turns = Turns(3, 2)
        await turns.take("a")
        await turns.take("a")
        third = asyncio.ensure_future(turns.take("a"))
        await turns.take("b")
        assert not third.done()
        turns.give_back("b")
        await asyncio.sleep(0)
        assert not third.done(), "a has two already"
        turns.give_back("a")
        await asyncio.wait_for(third, 5)

    run(scene)


def test_who_no_longer_waits_takes_no_turn() -> None:
    async def scene() -> None:
        turns = Turns(1, 1)
        await turns.take("a")
        waiting, handed = (asyncio.ensure_future(turns.take(caller)) for caller in "bc")
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        turns.give_back("a")
        # Cancelled after the turn was handed out and before it was taken: it goes on to the next.
        handed.cancel()
        await asyncio.sleep(0)
        await asyncio.wait_for(turns.take("d"), 5)

    run(scene)
