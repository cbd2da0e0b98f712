"""The page of operations: what commands, requests and clients ask, from the declarations in ``planner.operations``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docs.generate import page, table

HEAD = (
    "What commands, requests and clients ask in the same words: `planner/operations` declares each once. "
    "`client.call(OPERATION, request)` asks a service from Python; with `--server` the command does. "
    "A key needs the scope. Where a service runs one as a job, a search that takes longer is put into its queue (202), "
    "and client and command wait for it."
)
OWN = "What a service answers besides: questions that become jobs, names, files, and the service itself."


def operations_page() -> str:
    """Every declared operation, then the other routes of the service."""
    from planner.operations.registry import OPERATIONS

    rows = [
        (
            f"`{each.method} {each.path}`",
            f"`meshwright {each.command}`" if each.command else "",
            each.scope,
            each.runs,
            each.summary,
        )
        for each in OPERATIONS
    ]
    declared: set[tuple[str, str]] = {(each.method, each.path) for each in OPERATIONS}
    return page(
        "Operations",
        HEAD,
        table(("HTTP", "command", "scope", "runs", "what it gives"), rows),
        f"## Other routes\n\n{OWN}",
        table(("HTTP", "what it gives"), _others(declared)),
    )


def _others(declared: set[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    from api.app import openapi_document

    paths: dict[str, Any] = openapi_document()["paths"]
    for path, methods in sorted(paths.items()):
        for method, said in methods.items():
            if (method.upper(), path) not in declared and not said.get("deprecated"):
                yield f"`{method.upper()} {path}`", said["summary"]
