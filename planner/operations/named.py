"""What the catalogue's operations share: documents under names, built-in ones first, then what is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import cache
from typing import Any, Literal

from pydantic import Field

from planner.operations.operation import Session
from profiles.document import Document


class Nothing(Document):
    """A question without parts."""


class Listing(Document):
    """Names with what a person asks first about each."""

    items: tuple[dict[str, Any], ...]


def plain_rows(listing: Listing) -> list[dict[str, Any]]:
    """The rows as a command prints them."""
    return [{key: value for key, value in each.items() if key != "builtin"} for each in listing.items]


class NamedRequest(Document):
    """A name; of a model or cluster on a person's machine also a file."""

    name: str


class RemovedName(Document):
    """A name that is gone; plans that were made of what it meant stay."""

    name: str
    versions: int


class NamedView(Document):
    """A named document and its version."""

    name: str
    version: int
    sha: str = Field(description="the document's id: the ETag to send with If-Match")
    created_at: datetime | None = Field(default=None, description="null = built in")
    builtin: bool
    document: dict[str, Any]


def unversioned(name: str, document: Document, *, builtin: bool) -> NamedView:
    """The view of a document that no database keeps."""
    data = document.model_dump(mode="json")
    return NamedView(name=name, version=1, sha=document.content_hash(), builtin=builtin, document=data)


def listed(
    kind: Literal["model", "cluster"],
    names: Callable[[], Iterable[str]],
    load: Callable[[str], Any],
    summary: Callable[[str, Any], dict[str, Any]],
) -> Callable[[Session, Nothing], Listing]:
    """The work of listing built-in documents, which are read once, and what is stored besides."""

    @cache
    def builtin(name: str) -> dict[str, Any]:
        return {**summary(name, load(name)), "builtin": True}

    def work(session: Session, asked: Nothing) -> Listing:
        own = ({**summary(name, each), "builtin": False} for name, each in session.named(kind))
        return Listing(items=(*map(builtin, names()), *own))

    return work


def shown(load: Callable[[str], Document]) -> Callable[[Session, NamedRequest], NamedView]:
    """The work of showing a built-in document, or one of a file of this machine."""
    return lambda session, asked: unversioned(asked.name, load(asked.name), builtin=False)
