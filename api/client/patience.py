"""The wait before a request is sent again: as ``Retry-After`` says, else longer each time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

FIRST_WAIT_S = 0.25


@dataclass(frozen=True, slots=True)
class Patience:
    """``retries`` times after the first try; a service that wants more than ``longest_wait_s`` is not asked again."""

    retries: int = 4
    longest_wait_s: float = 60.0
    sleep: Callable[[float], None] = time.sleep

    def wait_s(self, attempt: int, retry_after_s: float | None) -> float | None:
        """Seconds before try ``attempt`` (1 = the first repetition); None = give up.

        Without a word of the service the wait doubles, and is spread by chance so that clients do not come back as one.
        """
        if attempt > self.retries:
            return None
        if retry_after_s is not None:
            return None if retry_after_s > self.longest_wait_s else retry_after_s
        doubled = min(FIRST_WAIT_S * 2.0 ** (attempt - 1), self.longest_wait_s)
        return doubled * random.uniform(0.5, 1.0)


def parse_retry_after(text: str | None, now: datetime | None = None) -> float | None:
    """Seconds of a ``Retry-After`` header (RFC 9110, section 10.2.3): a number, or a moment; None = unreadable."""
    if text is None:
        return None
    word = text.strip()
    if word.isascii() and word.isdigit() and len(word) < 10:
        return float(word)
    try:
        moment = parsedate_to_datetime(word)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max((moment - (now or datetime.now(UTC))).total_seconds(), 0.0)
