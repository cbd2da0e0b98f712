"""Who asks, and may they?  An API key in the Authorization header; no cookies, so nothing can be forged from a page.

Without authentication (loopback only) everybody is ``local`` and may do everything.  Another kind of token (OIDC) is
another ``Authenticator`` in front of this one: it maps a header to a ``Caller``.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from anyio import to_thread
from fastapi import Request, Security
from fastapi.security import HTTPBearer

from api.api_keys import Scope, allows, is_good, split_key
from api.errors import NotAuthenticated, ScopeMissing
from api.rates import Rates
from planner.store.records import ApiKeyRecord
from planner.store.service import ServiceStore

REMEMBERED_S = 5.0
"""A revoked key works at most this much longer; in return a busy client costs no query a request."""
MOST_REMEMBERED = 10_000

bearer = HTTPBearer(
    auto_error=False, scheme_name="ApiKey", description="`Authorization: Bearer mw_<prefix>.<secret>` (token create)"
)
"""Only for the OpenAPI document; the header is read by ``Authenticator``."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the owner of jobs and idempotency keys."""

    owner: str
    key: ApiKeyRecord | None

    def demand(self, scope: Scope) -> None:
        """Raises ScopeMissing."""
        if self.key is not None and not allows(self.key, scope):
            held = ", ".join(self.key.scopes)
            raise ScopeMissing(f"this key has the scope {held}", hint=f"ask for a key with the scope {scope}")


LOCAL = Caller("local", None)


class Authenticator:
    """Maps an Authorization header to a caller."""

    def __init__(self, store: ServiceStore, rates: Rates, *, required: bool) -> None:
        self._store = store
        self._rates = rates
        self._required = required
        self._remembered: dict[str, tuple[float, ApiKeyRecord | None]] = {}

    async def caller(self, header: str | None) -> Caller:
        """The caller of a header.  Raises NotAuthenticated, TooManyRequests."""
        if not self._required:
            return LOCAL
        scheme, _, text = (header or "").partition(" ")
        parts = split_key(text.strip()) if scheme.lower() == "bearer" else None
        if parts is None:
            raise NotAuthenticated(
                "a key is needed", where="Authorization", hint="send Authorization: Bearer mw_<prefix>.<secret>"
            )
        prefix, secret = parts
        record = await self._record(prefix)
        if not is_good(record, secret, datetime.now(UTC)) or record is None:
            raise NotAuthenticated("this key is unknown, revoked or expired", where="Authorization")
        self._rates.take(prefix)
        return Caller(prefix, record)

    async def _record(self, prefix: str) -> ApiKeyRecord | None:
        now = time.monotonic()
        known = self._remembered.get(prefix)
        if known is not None and now - known[0] < REMEMBERED_S:
            return known[1]
        record = await to_thread.run_sync(self._store.api_key, prefix)
        if len(self._remembered) > MOST_REMEMBERED:
            self._remembered.clear()
        self._remembered[prefix] = (now, record)
        return record


def demands(scope: Scope) -> Callable[..., Awaitable[Caller]]:
    """A dependency: the caller, who has ``scope``.  Runs before the body is read."""

    async def caller(request: Request, _documented: object = Security(bearer)) -> Caller:
        authenticator: Authenticator = request.app.state.service.authenticator
        found = await authenticator.caller(request.headers.get("authorization"))
        found.demand(scope)
        return found

    return caller
