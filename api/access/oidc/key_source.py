"""An issuer's public keys: from a file, or from the issuer (OpenID Connect Discovery 1.0, section 4).

Only addresses of the operator are asked: the issuer's, and the ``jwks_uri`` that the issuer names.  No redirect is
followed, little is read, and not for long.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from email.message import Message
from pathlib import Path
from typing import IO, Any

from api.access.oidc.settings import OidcSettings, may_be_asked
from profiles.errors import MeshwrightError
from profiles.safe_json import load_json_text

LARGEST_BYTES = 256 * 1024
CONNECT_S = 5.0
LONGEST_S = 10.0
PIECE_BYTES = 16 * 1024
DISCOVERY = "/.well-known/openid-configuration"


class KeysUnreachable(Exception):
    """The keys cannot be had now; the words are for the operator's log, never for a client."""


def load_keys(settings: OidcSettings) -> list[dict[str, Any]]:
    """The JWK Set's members, as plain data.  Blocks.  Raises KeysUnreachable."""
    if settings.jwks_file is not None:
        return _members(_file_text(settings.jwks_file), str(settings.jwks_file))
    address = settings.issuer.rstrip("/") + DISCOVERY
    found = _data(_fetched(address), address)
    if not isinstance(found, dict) or found.get("issuer") != settings.issuer:
        # Section 4.3: the issuer that answers must be the one that was asked.
        raise KeysUnreachable(f"{address} speaks for another issuer")
    where = found.get("jwks_uri")
    if not isinstance(where, str) or not may_be_asked(where):
        raise KeysUnreachable(f"{address} names no jwks_uri with https")
    return _members(_fetched(where), where)


def _members(text: str, where: str) -> list[dict[str, Any]]:
    found = _data(text, where)
    keys = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(keys, list):
        raise KeysUnreachable(f"{where} is no JWK Set: it has no list of keys")
    return [key for key in keys if isinstance(key, dict)]


def _data(text: str, where: str) -> Any:
    try:
        return load_json_text(text, where)
    except MeshwrightError as error:
        raise KeysUnreachable(f"{where} is no JSON: {error.what}") from error


def _file_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise KeysUnreachable(f"{path} cannot be read: {error.strerror}") from error
    return _text(content, str(path))


def _text(content: bytes, where: str) -> str:
    if len(content) > LARGEST_BYTES:
        raise KeysUnreachable(f"{where} has more than {LARGEST_BYTES:,} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise KeysUnreachable(f"{where} is no UTF-8") from error


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(  # the base class's own signature
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        """A redirect is an error: it could lead anywhere."""
        return


def _fetched(address: str) -> str:
    end_s = time.monotonic() + LONGEST_S
    opener = urllib.request.build_opener(_NoRedirect)
    request = urllib.request.Request(address, headers={"Accept": "application/json", "User-Agent": "meshwright"})
    pieces: list[bytes] = []
    size_bytes = 0
    try:
        with opener.open(request, timeout=CONNECT_S) as response:
            while piece := response.read1(PIECE_BYTES):
                size_bytes += len(piece)
                pieces.append(piece)
                if size_bytes > LARGEST_BYTES or time.monotonic() > end_s:
                    break
    except urllib.error.HTTPError as error:
        error.close()
        raise KeysUnreachable(f"{address} answers {error.code}") from error
    except (OSError, ValueError) as error:
        raise KeysUnreachable(f"{address} cannot be reached: {type(error).__name__}") from error
    if time.monotonic() > end_s:
        raise KeysUnreachable(f"{address} answers too slowly")
    return _text(b"".join(pieces), address)
