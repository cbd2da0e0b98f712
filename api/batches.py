"""What waits in a queue, taken together: many writes share a transaction."""

from __future__ import annotations

import queue
from typing import TypeVar

T = TypeVar("T")


def next_batch(waiting: queue.SimpleQueue[T | None], most: int) -> tuple[list[T], bool]:
    """Wait for one item, take up to ``most`` that are there; the items, and whether None ended them."""
    batch = [waiting.get()]
    while len(batch) < most and batch[-1] is not None:
        try:
            batch.append(waiting.get_nowait())
        except queue.Empty:
            break
    return [item for item in batch if item is not None], batch[-1] is None
