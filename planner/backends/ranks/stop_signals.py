"""Ends the ranks when somebody ends us: a request to end becomes an exit, which ends them too.

Ranks lead sessions of their own: neither a closed terminal nor ``kill`` of our process reaches them.  Ctrl-C already
raises in Python; the other two requests do so only here.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

REQUESTS = (signal.SIGTERM, signal.SIGHUP)
EXIT_BASE = 128
"""A shell reports a process that a signal ended as 128 + its number."""
_asked: list[int] = []
"""The request within ``exits_on_request``; Python drops an exception raised while it finalises an object."""


def leave_if_asked() -> None:
    """Raise SystemExit where a request came whose own exception was lost; for loops that wait."""
    if _asked:
        raise SystemExit(EXIT_BASE + _asked[0])


@contextmanager
def exits_on_request() -> Iterator[None]:
    """Within it SIGTERM and SIGHUP raise SystemExit (143, 129); later ones are ignored until all is ended.

    Does nothing outside the main thread, where Python allows no handlers, and leaves a signal that is ignored (nohup).
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in REQUESTS}
    taken = [number for number, old in before.items() if old != signal.SIG_IGN]

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        for each in taken:
            signal.signal(each, signal.SIG_IGN)
        _asked.append(number)
        raise SystemExit(EXIT_BASE + number)

    for number in taken:
        signal.signal(number, leave)
    try:
        yield
    finally:
        _asked.clear()
        for number in taken:
            signal.signal(number, before[number] or signal.SIG_DFL)
