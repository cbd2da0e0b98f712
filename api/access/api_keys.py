"""API keys ``mw_<prefix>.<secret>``: the prefix finds the key, the secret proves it; only its hash is kept.

The secret has 256 random bits, so a plain SHA-256 is enough: there is nothing to guess and nothing to slow down.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

from planner.errors import DocumentInvalid
from planner.store.records import ApiKeyRecord

Scope = Literal["read", "plan", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
IMPLIED: dict[Scope, frozenset[Scope]] = {
    "read": frozenset({"read"}),
    "plan": frozenset({"read", "plan"}),
    "admin": frozenset({"read", "plan", "admin"}),
}
"""read: look at everything; plan: ask, label and cancel; admin: change named models, clusters and profiles."""
MARK = "mw_"
LONGEST_KEY = 128
MOST_DAYS = 3650


def new_key(name: str, scope: str, days: int | None, now: datetime | None = None) -> tuple[str, ApiKeyRecord]:
    """A fresh key in the clear, shown once, and the record to keep.  Raises DocumentInvalid."""
    if scope not in SCOPES:
        raise DocumentInvalid(f"there is no scope {scope!r}", where="--scope", hint=f"one of {', '.join(SCOPES)}")
    if days is not None and not 1 <= days <= MOST_DAYS:
        raise DocumentInvalid(f"{days} days", where="--days", hint=f"give a number from 1 to {MOST_DAYS}")
    if not name.strip() or len(name) > 64 or not name.isprintable():
        raise DocumentInvalid("the key needs a name", where="--name", hint="up to 64 printable characters")
    moment = now or datetime.now(UTC)
    prefix, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
    record = ApiKeyRecord(
        prefix=prefix,
        secret_sha256=_digest(secret),
        name=name.strip(),
        scopes=(scope,),
        created_at=moment,
        expires_at=None if days is None else moment + timedelta(days=days),
    )
    return f"{MARK}{prefix}.{secret}", record


def split_key(text: str) -> tuple[str, str] | None:
    """Prefix and secret of a key, or None for something else."""
    prefix, dot, secret = text.removeprefix(MARK).partition(".")
    good = text.startswith(MARK) and bool(dot) and len(text) <= LONGEST_KEY and text.isascii()
    return (prefix, secret) if good and prefix and secret else None


def is_good(record: ApiKeyRecord | None, secret: str, now: datetime) -> bool:
    """Whether the secret is this key's and the key still counts.  Takes as long for an unknown key."""
    expected = record.secret_sha256 if record is not None else _digest("")
    same = hmac.compare_digest(expected, _digest(secret))
    if record is None or not same or record.revoked_at is not None:
        return False
    return record.expires_at is None or now < record.expires_at


def allows(record: ApiKeyRecord, scope: Scope) -> bool:
    """Whether the key's scopes include ``scope``."""
    return any(scope in IMPLIED[held] for held in SCOPES if held in record.scopes)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
