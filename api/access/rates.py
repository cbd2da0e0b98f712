"""The rate limit of one client: a token bucket per key, ``burst`` at once, then ``rate`` a second."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from api.errors import TooManyRequests

MOST_BUCKETS = 10_000


class Rates:
    """One bucket for each key that was seen lately."""

    def __init__(self, rate_per_s: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def headers(self, key: str) -> list[tuple[bytes, bytes]]:
        """What a key may still ask, as answers say it (draft-ietf-httpapi-ratelimit-headers)."""
        tokens, _ = self._buckets.get(key, (float(self._burst), 0.0))
        full_s = math.ceil((self._burst - tokens) / self._rate_per_s)
        policy = f'"key";q={self._burst};w={math.ceil(self._burst / self._rate_per_s)}'
        said = f'"key";r={math.floor(tokens)};t={full_s}'
        return [(b"ratelimit-policy", policy.encode()), (b"ratelimit", said.encode())]

    def take(self, key: str) -> None:
        """Take one token.  Raises TooManyRequests with the seconds until the next one."""
        now = self._clock()
        tokens, since = self._buckets.get(key, (float(self._burst), now))
        tokens = min(tokens + (now - since) * self._rate_per_s, float(self._burst))
        if tokens < 1:
            wait_s = math.ceil((1 - tokens) / self._rate_per_s)
            self._buckets[key] = (tokens, now)
            raise TooManyRequests("this key asks too fast", hint="wait as Retry-After says", retry_after_s=wait_s)
        self._buckets[key] = (tokens - 1, now)
        if len(self._buckets) > MOST_BUCKETS:
            self._drop_full(now)

    def _drop_full(self, now: float) -> None:
        """Forget keys whose bucket is full again: a new bucket is the same."""
        refill_s = self._burst / self._rate_per_s
        self._buckets = {key: held for key, held in self._buckets.items() if now - held[1] < refill_s}
