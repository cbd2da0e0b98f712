"""The verification of a bearer token: signature, issuer, audience and times first, then its claims.

Follows RFC 8725 (best practices for JWT): algorithms come from the settings, never from the token; ``jku``, ``x5u``,
``jwk`` and ``x5c`` headers are not looked at; a token of another purpose (``typ``) does not count; whatever is wrong
with a token, the answer is 401.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from api.access.api_keys import IMPLIED, Scope
from api.access.oidc.key_set import IssuerKey, KeySet
from api.access.oidc.key_source import KeysUnreachable
from api.access.oidc.settings import OidcSettings
from api.errors import NotAuthenticated
from planner.errors import DocumentInvalid

LONGEST_TOKEN = 8_192
LONGEST_SUBJECT = 255
TYPES = frozenset({"jwt", "at+jwt", "application/at+jwt"})
"""Of an access token (RFC 9068) or of one that does not say; a logout or a security event token is none."""
REQUIRED = ["exp", "iss", "aud", "sub"]


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a good token stands for."""

    issuer: str
    subject: str
    scopes: frozenset[Scope]


class TokenVerifier:
    """Checks tokens of one issuer."""

    def __init__(self, settings: OidcSettings, keys: KeySet | None = None) -> None:
        if find_spec("jwt") is None or find_spec("cryptography") is None:
            raise DocumentInvalid(
                "bearer tokens need a library that is not installed",
                where="oidc",
                hint="pip install 'meshwright[oidc]'",
            )
        self._settings = settings
        self._keys = keys or KeySet(settings)
        if keys is None and settings.jwks_file is not None:
            # A wrong file is said when the service starts, and not to the first client.
            try:
                self._keys.load_now()
            except KeysUnreachable as error:
                raise DocumentInvalid(
                    str(error), where="oidc.jwks_file", hint="a JWK Set, as RFC 7517 has it"
                ) from None

    async def identity(self, token: str) -> Identity:
        """Who it is.  Raises NotAuthenticated, ServiceBusy when the issuer's keys cannot be had."""
        kid, algorithm = self._announced(token)
        claims = None
        for key in await self._keys.candidates(kid, algorithm):
            claims = self._verified(token, key, algorithm)
            if claims is not None:
                break
        if claims is None:
            raise refused("is not signed by a key of the issuer")
        subject = claims["sub"]
        if not 1 <= len(subject) <= LONGEST_SUBJECT or not subject.isprintable():
            raise refused("has no usable subject")
        return Identity(self._settings.issuer, subject, self._scopes(claims))

    def _announced(self, token: str) -> tuple[str | None, str]:
        """Key and algorithm that the token's header names, where they may be looked at."""
        import jwt

        if len(token) > LONGEST_TOKEN or not token.isascii():
            raise refused("is too long")
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise refused("cannot be read") from error
        algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
        if not isinstance(algorithm, str) or algorithm not in self._settings.algorithms:
            raise refused("is signed in a way that is not allowed")
        if not isinstance(kind, str) or kind.lower() not in TYPES:
            raise refused("is no access token")
        return (kid if isinstance(kid, str) else None), algorithm

    def _verified(self, token: str, key: IssuerKey, algorithm: str) -> dict[str, Any] | None:
        """The claims; None where another key may have signed.  Raises NotAuthenticated."""
        import jwt

        try:
            return jwt.decode(
                token,
                key.public,
                algorithms=[algorithm],
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                leeway=self._settings.clock_skew_s,
                options={"require": REQUIRED},
            )
        except jwt.InvalidSignatureError:
            return None
        except jwt.PyJWTError as error:
            words = {
                jwt.ExpiredSignatureError: "has expired",
                jwt.ImmatureSignatureError: "is not valid yet",
                jwt.InvalidAudienceError: "is for somebody else",
                jwt.InvalidIssuerError: "is from another issuer",
                jwt.MissingRequiredClaimError: f"lacks one of {', '.join(REQUIRED)}",
            }
            raise refused(words.get(type(error), "cannot be used")) from error
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise refused("cannot be used") from error

    def _scopes(self, claims: Mapping[str, Any]) -> frozenset[Scope]:
        found: Any = claims
        name = self._settings.scope_claim
        for part in name.strip("/").split("/") if name.startswith("/") else [name]:
            found = found.get(part) if isinstance(found, Mapping) else None
        words = found.split() if isinstance(found, str) else found if isinstance(found, list) else []
        held = [
            self._settings.scopes[word] for word in words if isinstance(word, str) and word in self._settings.scopes
        ]
        return frozenset(scope for one in held for scope in IMPLIED[one])


def refused(why: str) -> NotAuthenticated:
    """The one answer to a token that does not count."""
    return NotAuthenticated(f"this token {why}", where="Authorization", hint="ask the issuer for a new one", given=True)
