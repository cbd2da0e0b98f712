"""The issuer's keys that count now: a cache that follows rotation and limits how often the issuer is asked.

- A key that is not known (rotation) makes it ask again, at most every ``refetch_s``, whatever comes in between.
- Known keys that grow old (``keys_age_s``) are renewed beside the requests that use them.
- When the issuer is away they count until they are ``stale_s`` old; then nobody is believed any more (503).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from api.access.oidc.key_source import KeysUnreachable, load_keys
from api.access.oidc.settings import OidcSettings
from api.errors import ServiceBusy

FIRST_RETRY_S = 5.0
"""Pause between tries while there are no keys at all."""
LEAST_RSA_BITS = 2048
CURVES = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}

log = logging.getLogger("meshwright.oidc")


@dataclass(frozen=True, slots=True)
class IssuerKey:
    """A public key, and the algorithms that it may be used with."""

    kid: str | None
    algorithms: frozenset[str]
    public: Any


class KeySet:
    """The issuer's keys as they are known now."""

    def __init__(
        self,
        settings: OidcSettings,
        load: Callable[[OidcSettings], list[dict[str, Any]]] = load_keys,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._load, self._clock = settings, load, clock
        self._keys: tuple[IssuerKey, ...] = ()
        self._loaded_s: float | None = None
        self._tried_s: float | None = None
        self._renewing = asyncio.Lock()
        self._beside: asyncio.Task[None] | None = None

    def load_now(self) -> None:
        """Read the keys before anybody asks; blocks.  Raises KeysUnreachable."""
        self._tried_s = self._clock()
        keys = usable_keys(self._load(self._settings), self._settings.algorithms)
        if not keys:
            raise KeysUnreachable("there is no public key for the allowed algorithms")
        self._keys, self._loaded_s = keys, self._clock()

    async def candidates(self, kid: str | None, algorithm: str) -> tuple[IssuerKey, ...]:
        """Keys that may have signed; none for an unknown key.  Raises ServiceBusy without keys that still count."""
        found = self._matching(kid, algorithm)
        if not found or not self._count():
            await self._renew()
            found = self._matching(kid, algorithm)
        elif self._age_s() > self._settings.keys_age_s and self._may_ask():
            self._beside = asyncio.create_task(self._renew())
        if not self._count():
            raise ServiceBusy(
                "tokens cannot be checked now: the issuer's keys are away", retry_after_s=int(FIRST_RETRY_S)
            )
        return found

    def _matching(self, kid: str | None, algorithm: str) -> tuple[IssuerKey, ...]:
        if kid is None and len(self._keys) > 1:
            # Without a name a key is meant only where there is no choice.
            return ()
        return tuple(key for key in self._keys if kid in {None, key.kid} and algorithm in key.algorithms)

    def _age_s(self) -> float:
        return float("inf") if self._loaded_s is None else self._clock() - self._loaded_s

    def _count(self) -> bool:
        return self._age_s() <= self._settings.stale_s

    def _may_ask(self) -> bool:
        pause_s = self._settings.refetch_s if self._count() else min(FIRST_RETRY_S, self._settings.refetch_s)
        return self._tried_s is None or self._clock() - self._tried_s >= pause_s

    async def _renew(self) -> None:
        async with self._renewing:
            # Those who waited for the lock find that it was just done.
            if not self._may_ask():
                return
            try:
                await to_thread.run_sync(self.load_now)
            except KeysUnreachable as error:
                log.warning("the keys of the token issuer cannot be renewed: %s", error)


def usable_keys(members: Sequence[dict[str, Any]], allowed: Sequence[str]) -> tuple[IssuerKey, ...]:
    """The public signing keys among the members of a JWK Set (RFC 7517), each with its allowed algorithms."""
    from jwt import PyJWK, PyJWTError

    keys = []
    for member in members:
        algorithms = _algorithms_of(member) & set(allowed)
        if not algorithms or member.get("use", "sig") != "sig" or "verify" not in member.get("key_ops", ["verify"]):
            continue
        try:
            public = PyJWK(_public_part(member), sorted(algorithms)[0]).key
        except (PyJWTError, ValueError, TypeError, KeyError) as error:
            log.warning("a key of the token issuer is left out: %s", type(error).__name__)
            continue
        if getattr(public, "key_size", LEAST_RSA_BITS) < LEAST_RSA_BITS and member["kty"] == "RSA":
            log.warning("a key of the token issuer is left out: fewer than %d bits", LEAST_RSA_BITS)
            continue
        kid = member.get("kid")
        keys.append(IssuerKey(kid if isinstance(kid, str) else None, frozenset(algorithms), public))
    return tuple(keys)


def _algorithms_of(member: dict[str, Any]) -> set[str]:
    """What a key's type allows; a key that names its algorithm allows only that.  Symmetric keys allow nothing."""
    kind, curve = member.get("kty"), member.get("crv")
    if kind == "RSA":
        found = {f"{family}{bits}" for family in ("RS", "PS") for bits in (256, 384, 512)}
    elif kind == "EC" and isinstance(curve, str) and curve in CURVES:
        found = {CURVES[curve]}
    elif kind == "OKP" and curve in {"Ed25519", "Ed448"}:
        found = {"EdDSA"}
    else:
        return set()
    return found & {str(member["alg"])} if "alg" in member else found


def _public_part(member: dict[str, Any]) -> dict[str, Any]:
    """Without private numbers, should somebody have put them there."""
    return {name: value for name, value in member.items() if name in {"kty", "crv", "n", "e", "x", "y"}}
