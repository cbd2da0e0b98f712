"""Watching transactions: off, unless a door above turns it on for what runs in its context.

A door that traces its requests sets ``WATCH`` to a function that is given ``read`` or ``write`` and returns what is
entered around the transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar

Watch = Callable[[str], AbstractContextManager[object]]
WATCH: ContextVar[Watch | None] = ContextVar("meshwright_store_watch", default=None)


def watched(kind: str) -> AbstractContextManager[object]:
    """What to enter around a transaction of this kind."""
    watch = WATCH.get()
    return nullcontext() if watch is None else watch(kind)
