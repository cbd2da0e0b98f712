"""Who asks: for what is shared out between callers far from their request."""

from __future__ import annotations

from contextvars import ContextVar

ASKING: ContextVar[str] = ContextVar("asking", default="local")
"""The owner of the request that is being answered; a task that the request starts has it too."""
