"""The SDK of the Model Context Protocol, which an installation may lack."""

from __future__ import annotations

from importlib.util import find_spec

from planner.errors import NotFound


def require_sdk(where: str) -> None:
    """Raises NotFound where it is not installed."""
    if find_spec("mcp") is None:
        raise NotFound(
            "the SDK of the Model Context Protocol is not installed",
            where=where,
            hint="pip install 'meshwright[mcp]'",
        )
