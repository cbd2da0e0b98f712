"""Authentication: a key or bearer token in the Authorization header; no cookies, so no page can forge a request.

Without authentication (loopback only) everybody is ``local`` and may do everything.  What begins with ``mw_`` is one
of our keys (``api_keys``); anything else is a token of the operator's issuer (``oidc``), where there is one.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal

from anyio import to_thread
from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer

from api.access.api_keys import MARK, SCOPES, Scope, allows, is_good, split_key
from api.access.oidc.tokens import TokenVerifier
from api.access.rates import Rates
from api.errors import NotAuthenticated, ScopeMissing
from api.http.asking import ASKING
from planner.store.records import ApiKeyRecord
from planner.store.service import ServiceStore

REMEMBERED_S = 5.0
"""A revoked key works at most this much longer; in return a busy client costs no query a request."""
MOST_REMEMBERED = 10_000
OWNER_DIGITS = 32
STATE = "caller"
"""Where a request's scope keeps who asks, for the log."""
QUOTA = "quota"
"""Where it keeps the headers that say what they may still ask."""

bearer = HTTPBearer(
    auto_error=False,
    scheme_name="ApiKey",
    description="`Authorization: Bearer mw_<prefix>.<secret>` (token create), or a token of the operator's OIDC issuer",
)
"""Only for the OpenAPI document; the header is read by ``Authenticator``."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks.

    ``owner``: of jobs and idempotency keys.  ``principal``: who that is in logs and in the audit trail: a key's prefix
    or a token's subject.
    """

    owner: str
    kind: Literal["local", "key", "token"]
    principal: str
    scopes: frozenset[Scope]

    def demand(self, scope: Scope) -> None:
        """Raises ScopeMissing."""
        if scope not in self.scopes:
            held = ", ".join(each for each in SCOPES if each in self.scopes) or "none"
            raise ScopeMissing(
                f"this {self.kind} has the scope {held}", scope=scope, hint=f"it needs the scope {scope}"
            )


LOCAL = Caller("local", "local", "local", frozenset(SCOPES))


class Authenticator:
    """Maps Authorization headers to a caller."""

    def __init__(
        self, store: ServiceStore, rates: Rates, *, required: bool, tokens: TokenVerifier | None = None
    ) -> None:
        self._store = store
        self._rates = rates
        self._required = required
        self._tokens = tokens
        self._remembered: dict[str, tuple[float, ApiKeyRecord | None]] = {}

    async def caller(self, headers: Sequence[str]) -> Caller:
        """The caller of a request's Authorization headers.  Raises NotAuthenticated, TooManyRequests, ServiceBusy."""
        if not self._required:
            return LOCAL
        if len(headers) > 1:
            # Two parties that read different ones would see different callers.
            raise NotAuthenticated("there are several Authorization headers", where="Authorization", hint="send one")
        scheme, _, text = (headers[0] if headers else "").partition(" ")
        text = text.strip()
        if scheme.lower() != "bearer" or not text:
            raise self._nothing_given()
        found = await (self._of_key(text) if self._tokens is None or text.startswith(MARK) else self._of_token(text))
        self._rates.take(found.owner)
        return found

    def quota(self, caller: Caller) -> list[tuple[bytes, bytes]]:
        """What the caller may still ask, as headers; none without authentication, where nobody is counted."""
        return self._rates.headers(caller.owner) if self._required else []

    async def _of_key(self, text: str) -> Caller:
        parts = split_key(text)
        if parts is None:
            raise self._nothing_given()
        prefix, secret = parts
        record = await self._record(prefix)
        if not is_good(record, secret, datetime.now(UTC)) or record is None:
            raise NotAuthenticated("this key is unknown, revoked or expired", where="Authorization", given=True)
        held = frozenset(scope for scope in SCOPES if allows(record, scope))
        return Caller(prefix, "key", prefix, held)

    async def _of_token(self, text: str) -> Caller:
        if self._tokens is None:
            raise self._nothing_given()
        identity = await self._tokens.identity(text)
        # Short, of plain letters, and no key's prefix, whatever a subject looks like.
        digest = hashlib.sha256(f"{identity.issuer}\n{identity.subject}".encode()).hexdigest()
        return Caller(f"oidc-{digest[:OWNER_DIGITS]}", "token", identity.subject, identity.scopes)

    def _nothing_given(self) -> NotAuthenticated:
        if self._tokens is None:
            words, hint = "a key is needed", "send Authorization: Bearer mw_<prefix>.<secret>"
        else:
            words, hint = "a key or a token is needed", "send Authorization: Bearer <key or token>"
        return NotAuthenticated(words, where="Authorization", hint=hint)

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
        found: Caller | None = None
        try:
            found = await authenticator.caller(request.headers.getlist("authorization"))
            request.scope["state"][STATE] = found
            request.scope["state"][QUOTA] = authenticator.quota(found)
            ASKING.set(found.owner)
            found.demand(scope)
        except (NotAuthenticated, ScopeMissing) as error:
            request.app.state.service.audit.refuse(request, error.http_status, found)
            raise
        return found

    return caller


Reader = Annotated[Caller, Depends(demands("read"))]
Planner = Annotated[Caller, Depends(demands("plan"))]
Admin = Annotated[Caller, Depends(demands("admin"))]
"""Who calls, as routes ask for it: refused without the scope."""
