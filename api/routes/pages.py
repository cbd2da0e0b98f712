"""``/``, ``/plans/...``, ``/assets/...``: the web pages.  One document for every screen; their scripts ask ``/v1``.

The bundle is built from ``web/`` into ``api/static/`` (``make web``) and ships inside the wheel.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from functools import lru_cache
from pathlib import Path

from anyio import to_thread
from fastapi import APIRouter, HTTPException, Request, Response

from api.envelope import PAGE_POLICY
from api.http.conditional import REVALIDATE, etag, not_modified
from api.http.packing import takes_gzip

STATIC = Path(__file__).parents[1] / "static"
SCREENS = ("plans", "diff", "jobs", "compare", "models", "clusters", "accuracy")
"""First parts of the addresses of screens, as in web/src/router.tsx; any other unknown path is a 404 of the API."""
FOR_EVERYBODY = "public, max-age=31536000, immutable"
"""An asset's name holds the hash of its content."""
PAGE = "text/html; charset=utf-8"
ASSET = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,127}")
MEDIA_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".json": "application/json"}
"""Kinds of files that the bundle has; all of them shrink when packed."""
NOT_BUILT = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Meshwright</title></head><body>
<h1>Meshwright answers, but its web pages are not built here</h1>
<p>This is a source checkout without the bundle. With Node 20.19 or newer, <code>make web</code> builds it; released
wheels contain it.</p>
<p>The REST API works: <a href="/openapi.json">/openapi.json</a> describes it.</p>
</body></html>
"""

router = APIRouter(include_in_schema=False)


@router.api_route("/", methods=["GET", "HEAD"])
async def show_screen(request: Request) -> Response:
    """The document of every screen; the browser asks again whether it changed."""
    try:
        content = await to_thread.run_sync((STATIC / "index.html").read_bytes)
    except FileNotFoundError:
        return Response(NOT_BUILT, 404, media_type=PAGE)
    version = hashlib.sha256(content).hexdigest()[:32]
    headers = {"ETag": etag(version), "Cache-Control": REVALIDATE}
    found = not_modified(request, version, REVALIDATE) or Response(content, headers=headers, media_type=PAGE)
    # Said here because a 304, which has no media type, replaces the policy that the browser keeps with the page.
    found.headers["Content-Security-Policy"] = PAGE_POLICY.decode()
    return found


@router.api_route("/assets/{name}", methods=["GET", "HEAD"])
async def show_asset(request: Request, name: str) -> Response:
    """A script, a style or a picture.  Raises 404 for any name that is no plain file of the bundle."""
    if ASSET.fullmatch(name) is None:
        raise HTTPException(404)
    try:
        plain, packed = await to_thread.run_sync(asset, STATIC / "assets" / name)
    except (FileNotFoundError, IsADirectoryError):
        raise HTTPException(404) from None
    headers = {"Cache-Control": FOR_EVERYBODY, "Vary": "Accept-Encoding"}
    if packed is None or not takes_gzip(request):
        return Response(plain, headers=headers, media_type=media_type(name))
    return Response(packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=media_type(name))


@lru_cache(maxsize=256)
def asset(path: Path) -> tuple[bytes, bytes | None]:
    """A file as it is, and packed where that helps."""
    content = path.read_bytes()
    packed = gzip.compress(content, 9, mtime=0) if path.suffix in MEDIA_TYPES else None
    return content, packed


def media_type(name: str) -> str:
    """What the browser is told that a file is."""
    return MEDIA_TYPES.get(Path(name).suffix, "application/octet-stream")


for _screen in SCREENS:
    for _path in (f"/{_screen}", f"/{_screen}/{{rest:path}}"):
        router.add_api_route(_path, show_screen, methods=["GET", "HEAD"])
