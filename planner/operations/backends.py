"""Back-ends by name."""

from __future__ import annotations

from functools import cache

from pydantic import Field

from planner.backends.registry import backends
from planner.backends.summary import backend_summary
from planner.operations.named import Nothing
from planner.operations.operation import Operation
from profiles.document import Document


class BackEndView(Document):
    """Software that trains, as ``constraints.backends`` names it."""

    name: str
    title: str
    summary: str
    releases: tuple[str, ...] = Field(description="the default first; a question says NAME==RELEASE for another")
    vendors: tuple[str, ...] = Field(description="makers of the devices that it trains on; empty = all")
    writes_files: bool = Field(description="launch files can be written for it; `any` means these")
    predicts_only: tuple[str, ...] = Field(description="releases that no launch files are written for")
    launchers: tuple[str, ...] = Field(description="what starts its processes; empty where no files are written")


class BackEndListing(Document):
    """Every back-end that this service knows."""

    items: tuple[BackEndView, ...]


@cache
def _backends() -> BackEndListing:
    return BackEndListing(
        items=tuple(BackEndView.model_validate(backend_summary(each)) for each in backends().values())
    )


LIST_BACKENDS = Operation(
    name="list_backends",
    summary="Back-ends that a question may name, with their releases",
    description="From the registry, other parties' ones too; `any` means those that files can be written for.",
    request=Nothing,
    answer=BackEndListing,
    work=lambda _session, _asked: _backends(),
    path="/v1/backends",
    tag="catalogue",
    errors=(),
)
