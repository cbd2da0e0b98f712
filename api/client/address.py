"""The service's address and API key: both are checked before anything is sent; a key is never shown."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

from profiles.errors import DocumentInvalid

SERVER_VARIABLE = "MESHWRIGHT_SERVER"
KEY_VARIABLE = "MESHWRIGHT_API_KEY"
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_KEY = re.compile(r"[\x21-\x7e]{1,8192}")


def checked_address(url: str) -> str:
    """The address without a slash at its end.  Raises DocumentInvalid for what is no plain http(s) address."""
    import httpx

    try:
        parts = urlsplit(url)
        httpx.URL(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except (ValueError, httpx.InvalidURL):
        usable = False
    if not usable or not url.isascii() or not url.isprintable() or " " in url:
        raise DocumentInvalid(
            "this is no address of a service", where="--server", hint="write it as http://HOST:PORT or https://HOST"
        )
    if parts.username is not None or parts.password is not None:
        # The address is printed and logged; a key is not.
        raise DocumentInvalid(
            "the address holds a password", where="--server", hint=f"put the key into {KEY_VARIABLE} instead"
        )
    if parts.query or parts.fragment:
        raise DocumentInvalid(
            "the address ends with a query or a fragment", where="--server", hint="give only http(s)://HOST:PORT/PATH"
        )
    return url.rstrip("/")


def is_loopback(address: str) -> bool:
    """Whether nobody but this machine is asked, so that no proxy can be meant."""
    return urlsplit(address).hostname in LOOPBACK


def checked_key(key: str | None) -> str | None:
    """The key given, or that of the environment, or None.  Raises DocumentInvalid without showing it."""
    found = key if key is not None else os.environ.get(KEY_VARIABLE, "").strip()
    if not found:
        return None
    if not _KEY.fullmatch(found):
        raise DocumentInvalid(
            "the API key holds characters that no key has",
            where=KEY_VARIABLE,
            hint="copy it whole and without line ends, as `meshwright token create` printed it",
        )
    return found
