"""The reader of request bodies: in pieces, never more than the limit, and only plain JSON.

A body that takes longer than the service's patience (``connections.body_s``) holds a connection for nothing.
A body that says it is compressed is refused unread: a kilobyte of gzip can hold a gigabyte.
"""

from __future__ import annotations

from typing import Any, TypeVar

from anyio import fail_after
from pydantic import BaseModel
from starlette.requests import ClientDisconnect, Request

from api.errors import BodyTooLarge, BodyTooSlow, MediaTypeRefused, RequestRefused
from api.http.document_check import checked_document
from api.http.json_body import parse_json

JSON_TYPES = frozenset({"application/json", "application/problem+json"})
M = TypeVar("M", bound=BaseModel)


async def read_document(request: Request, kind: type[M], limit_bytes: int) -> M:
    """The body as a ``kind``.  Raises what ``read_json`` raises, DocumentInvalid with every finding."""
    return checked_document(kind, await read_json(request, limit_bytes))


async def read_json(request: Request, limit_bytes: int) -> Any:
    """The body's plain data.  Raises MediaTypeRefused, BodyTooLarge, DocumentInvalid."""
    return parse_json(await read_body(request, limit_bytes))


async def read_body(request: Request, limit_bytes: int) -> bytes:
    """The body's bytes, of at most ``limit_bytes``.  Raises MediaTypeRefused, BodyTooLarge."""
    _check_type(request)
    said = request.headers.get("content-length", "")
    if said.isascii() and said.isdigit() and (len(said) > 18 or int(said) > limit_bytes):
        raise _too_large(limit_bytes)
    body_s: float = request.app.state.service.settings.connections.body_s
    pieces: list[bytes] = []
    size_bytes = 0
    try:
        with fail_after(body_s):
            async for piece in request.stream():
                size_bytes += len(piece)
                if size_bytes > limit_bytes:
                    raise _too_large(limit_bytes)
                pieces.append(piece)
    except TimeoutError:
        raise BodyTooSlow(
            f"the body was not there within {body_s:g} s", where="body", hint="send it without pauses"
        ) from None
    except ClientDisconnect:
        raise RequestRefused("the connection ended inside the body", where="body", hint="send it again") from None
    return b"".join(pieces)


def _check_type(request: Request) -> None:
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in {"", "identity"}:
        raise MediaTypeRefused("compressed bodies are not read", where="Content-Encoding", hint="send plain JSON")
    media_type, _, parameters = request.headers.get("content-type", "").partition(";")
    if media_type.strip().lower() not in JSON_TYPES:
        raise MediaTypeRefused(
            "the body must be JSON", where="Content-Type", hint="send it with Content-Type: application/json"
        )
    charset = parameters.lower().partition("charset=")[2].split(";")[0].strip(' "')
    if charset not in {"", "utf-8", "utf8"}:
        raise MediaTypeRefused("JSON is UTF-8", where="Content-Type", hint="send UTF-8 and drop the charset")


def _too_large(limit_bytes: int) -> BodyTooLarge:
    return BodyTooLarge(
        f"the body has more than {limit_bytes:,} bytes", where="body", hint="send less, or name what is stored already"
    )
