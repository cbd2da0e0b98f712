"""Host names of Host headers, origins and settings in one spelling, so that they can be compared."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from ipaddress import IPv6Address

ENVIRONMENT_VARIABLE = "MESHWRIGHT_ALLOWED_HOSTS"
ANY = "*"
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "::1", "localhost"})
WILDCARD_ADDRESSES = frozenset({"0.0.0.0", "::", ""})
"""Addresses to listen on that are no name of anybody."""

_AUTHORITY = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(?::\d{0,5})?")
_ORIGIN = re.compile(r"https?://(?P<authority>.+)", re.IGNORECASE)


def host_of(authority: str) -> str | None:
    """The host of ``name``, ``name:port``, ``[::1]:port``: lower case, without port, brackets and a last dot.

    None for what is no authority (RFC 3986, section 3.2), which names no host.
    """
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        return None
    name = match["name"].lower()
    if not name.startswith("["):
        return name.removesuffix(".") or None
    try:
        return str(IPv6Address(name[1:-1]))
    except ValueError:
        return None


def host_of_origin(origin: str) -> str | None:
    """The host of an Origin header; None for ``null`` and for what is no web page's."""
    match = _ORIGIN.fullmatch(origin)
    return None if match is None else host_of(match["authority"])


def allowed_name(text: str) -> str:
    """A host as settings name it, in the spelling of ``host_of``; ``*`` as it is.  Raises ValueError."""
    if text == ANY:
        return ANY
    # A bare IPv6 address has no brackets, and what looks like a port is its last part.
    name = host_of(f"[{text}]" if text.count(":") > 1 and not text.startswith("[") else text)
    if name is None or (text.count(":") == 1 or "]:" in text):
        raise ValueError(f"{text[:80]!r} is no host: give a name or an address without scheme, port and path")
    return name


def hosts_of_environment(environment: Mapping[str, str] | None = None) -> tuple[str, ...] | None:
    """What ``$MESHWRIGHT_ALLOWED_HOSTS`` names, by commas or spaces; None where it names nothing."""
    variables = os.environ if environment is None else environment
    return tuple(variables.get(ENVIRONMENT_VARIABLE, "").replace(",", " ").split()) or None
