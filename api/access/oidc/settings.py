"""The operator's settings for bearer tokens: whose tokens count, and for what; a token decides nothing about it."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from api.access.api_keys import Scope
from profiles.document import Document

Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
"""Signatures with a public key only: there is no ``none``, and no HMAC that a public key could be abused for."""

DEFAULT_SCOPES: dict[str, Scope] = {"meshwright:read": "read", "meshwright:plan": "plan", "meshwright:admin": "admin"}


class OidcSettings(Document):
    """One issuer of tokens (OpenID Connect, JWT access tokens of RFC 9068)."""

    issuer: str = Field(min_length=1, max_length=500, description="the iss claim, exactly; also where keys are found")
    audience: str = Field(min_length=1, max_length=500, description="what the aud claim must name")
    jwks_file: Path | None = Field(
        default=None, description="the issuer's public keys (a JWK Set); None = found at the issuer"
    )
    algorithms: tuple[Algorithm, ...] = Field(default=("RS256", "ES256"), min_length=1)
    clock_skew_s: float = Field(default=30.0, ge=0, le=300, description="how far the issuer's clock may be off")
    scope_claim: str = Field(
        default="scope", min_length=1, max_length=200, description="claim with the scopes; /a/b = b inside a"
    )
    scopes: dict[str, Scope] = Field(
        default=DEFAULT_SCOPES, min_length=1, description="the issuer's word -> read, plan or admin"
    )
    refetch_s: float = Field(
        default=60.0, ge=1, description="keys are asked for again at most so often, whatever tokens come"
    )
    keys_age_s: float = Field(default=3600.0, ge=1, description="keys this old are asked for again")
    stale_s: float = Field(
        default=86_400.0, ge=1, description="keys this old no longer count, should the issuer be away"
    )

    @model_validator(mode="after")
    def _check_issuer(self) -> Self:
        if self.jwks_file is None and not may_be_asked(self.issuer):
            raise ValueError("must be an https:// URL without query, or have a jwks_file")
        return self


def may_be_asked(url: str) -> bool:
    """Whether keys may come from there: https, or plain http on this machine; no credentials, query or fragment."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return False
    if not host or parts.query or parts.fragment or "@" in parts.netloc:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_this_machine(host))


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
