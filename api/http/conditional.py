"""Conditional requests: ETag, If-None-Match and If-Match (RFC 9110, section 13)."""

from __future__ import annotations

import hashlib
import re

from fastapi import Request, Response

from api.errors import PreconditionFailed, PreconditionMissing

FOR_EVER = "private, max-age=31536000, immutable"
REVALIDATE = "private, no-cache"
_TAG = re.compile(r'(?:W/)?"([\x21\x23-\x7e]*)"')


def etag(version: str) -> str:
    """A strong entity tag."""
    return f'"{version}"'


def content_tag(content: bytes) -> str:
    """The version of a body that has no version of its own."""
    return hashlib.sha256(content).hexdigest()[:32]


def not_modified(request: Request, version: str, cache_control: str) -> Response | None:
    """The 304 for a client that has this version already; None = send it."""
    given = request.headers.get("if-none-match", "")
    if given.strip() == "*" or version in _TAG.findall(given):
        return Response(status_code=304, headers={"ETag": etag(version), "Cache-Control": cache_control})
    return None


def demanded_version(request: Request) -> str | None:
    """The version that a change replaces: ``If-Match: "<version>"``, or None for ``If-None-Match: *`` (a new name).

    Raises PreconditionMissing when neither is there, PreconditionFailed for a tag that no version ever has.
    """
    if request.headers.get("if-none-match", "").strip() == "*":
        return None
    given = request.headers.get("if-match")
    if given is None:
        raise PreconditionMissing(
            "which version does this change replace?",
            where="If-Match",
            hint='send If-Match: "<ETag of GET>", or If-None-Match: * for a new name',
        )
    tags = _TAG.findall(given)
    if len(tags) != 1:
        raise PreconditionFailed(
            "one version is needed", where="If-Match", hint="send the ETag of GET, with its quotes"
        )
    found: str = tags[0]
    return found
