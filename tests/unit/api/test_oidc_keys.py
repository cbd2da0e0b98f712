"""Which keys of an issuer count: rotation, how often it is asked, what is left out, where they may come from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from pydantic import ValidationError

from api.access.oidc.key_set import KeySet, usable_keys
from api.access.oidc.key_source import LARGEST_BYTES, KeysUnreachable, load_keys
from api.access.oidc.settings import OidcSettings
from api.access.oidc.tokens import TokenVerifier
from api.errors import NotAuthenticated, ServiceBusy
from planner.errors import DocumentInvalid
from tests.token_issuer import AUDIENCE, ISSUER, Signer, issuing

OLD, NEW = Signer("2026-01"), Signer("2026-02", curve=True)
SETTINGS = OidcSettings(issuer=ISSUER, audience=AUDIENCE)


class Publisher:
    """Stands where the issuer's page stands: what it publishes now, and how often it was read."""

    def __init__(self, *signers: Signer) -> None:
        self.signers, self.asked, self.away = list(signers), 0, False

    def load(self, _settings: OidcSettings) -> list[dict[str, Any]]:
        self.asked += 1
        if self.away:
            raise KeysUnreachable("away")
        return [each.jwk for each in self.signers]


def subject(verifier: TokenVerifier, token: str) -> str:
    return asyncio.run(verifier.identity(token)).subject


def verifier_of(publisher: Publisher, clock: Callable[[], float], **changes: Any) -> TokenVerifier:
    settings = SETTINGS.model_copy(update=changes)
    return TokenVerifier(settings, KeySet(settings, publisher.load, clock))


def test_a_new_key_is_found_and_an_old_one_forgotten() -> None:
    now = [0.0]
    publisher = Publisher(OLD)
    verifier = verifier_of(publisher, lambda: now[0])
    assert subject(verifier, OLD.token()) == "ann@example.org"
    publisher.signers = [NEW]
    now[0] += SETTINGS.refetch_s
    assert subject(verifier, NEW.token()) == "ann@example.org"
    with pytest.raises(NotAuthenticated, match="not signed by a key"):
        subject(verifier, OLD.token())
    assert publisher.asked == 2


def test_a_flood_of_unknown_keys_asks_the_issuer_once() -> None:
    now = [0.0]
    publisher = Publisher(OLD)
    verifier = verifier_of(publisher, lambda: now[0])

    async def flood() -> int:
        tokens = [OLD.token(headers={"kid": f"made-up-{number}"}) for number in range(200)]
        answers = await asyncio.gather(*map(verifier.identity, tokens), return_exceptions=True)
        assert all(isinstance(each, NotAuthenticated) for each in answers)
        return publisher.asked

    async def floods() -> tuple[int, int]:
        first = await flood()
        now[0] += SETTINGS.refetch_s
        return first, await flood()

    assert asyncio.run(floods()) == (1, 2)
    assert subject(verifier, OLD.token()) == "ann@example.org", "good tokens never suffer"


def test_keys_outlive_their_issuer_for_a_while_and_then_nobody_is_believed() -> None:
    now = [0.0]
    publisher = Publisher(OLD)
    verifier = verifier_of(publisher, lambda: now[0], keys_age_s=100.0, stale_s=1000.0)

    async def ask() -> str:
        found = await verifier.identity(OLD.token())
        await asyncio.sleep(0.2)  # the renewal runs beside the request
        return found.subject

    assert asyncio.run(ask())
    publisher.away = True
    now[0] = 200.0
    assert asyncio.run(ask())
    assert publisher.asked == 2, "old keys are renewed"
    now[0] = 1001.0
    with pytest.raises(ServiceBusy) as caught:
        asyncio.run(ask())
    assert caught.value.retry_after_s == 5
    publisher.away = False
    now[0] += 60
    assert asyncio.run(ask())


def test_without_any_keys_it_is_the_services_fault_and_tried_again_soon() -> None:
    now = [0.0]
    publisher = Publisher(OLD)
    publisher.away = True
    verifier = verifier_of(publisher, lambda: now[0])
    for _ in range(3):
        with pytest.raises(ServiceBusy):
            subject(verifier, OLD.token())
    assert publisher.asked == 1
    publisher.away, now[0] = False, 5.0
    assert subject(verifier, OLD.token())


def test_keys_that_cannot_be_trusted_are_left_out() -> None:
    weak, good = Signer("weak", bits=1024), OLD.jwk
    members = [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "shared", "alg": "HS256"},
        {**good, "use": "enc"},
        {**good, "key_ops": ["encrypt"]},
        {**good, "alg": "HS256"},
        {**good, "alg": "RS512"},
        {**NEW.jwk, "crv": "secp256k1"},
        {**good, "n": "!"},
        {"kty": "RSA"},
        weak.jwk,
    ]
    assert usable_keys(members, SETTINGS.algorithms) == ()
    (kept,) = usable_keys([*members, {**good, "d": "private"}], SETTINGS.algorithms)
    assert (kept.kid, kept.algorithms) == (OLD.kid, frozenset({"RS256"}))
    assert not hasattr(kept.public, "private_numbers")


def test_a_token_without_kid_means_the_only_key() -> None:
    claims = jwt.decode(OLD.token(), options={"verify_signature": False})
    token = jwt.encode(claims, OLD.private, "RS256")
    assert subject(verifier_of(Publisher(OLD), lambda: 0.0), token) == "ann@example.org"
    with pytest.raises(NotAuthenticated):
        subject(verifier_of(Publisher(OLD, NEW), lambda: 0.0), token)


@pytest.mark.parametrize(
    ("claim", "value", "held"),
    [
        ("scope", "meshwright:read other", {"read"}),
        ("scope", ["meshwright:plan"], {"read", "plan"}),
        ("scope", "meshwright:admin", {"read", "plan", "admin"}),
        ("scope", "admin", set()),
        ("scope", {"meshwright:admin": True}, set()),
        ("scope", None, set()),
        ("/realm_access/roles", {"roles": ["meshwright:plan", 7]}, {"read", "plan"}),
        ("/realm_access/roles", "meshwright:admin", set()),
    ],
)
def test_a_claim_becomes_scopes(claim: str, value: Any, held: set[str]) -> None:
    verifier = verifier_of(Publisher(OLD), lambda: 0.0, scope_claim=claim)
    name = claim.strip("/").partition("/")[0]
    token = OLD.token(**{"scope": None, name: value})
    assert asyncio.run(verifier.identity(token)).scopes == held


def test_keys_are_found_at_the_issuer() -> None:
    with issuing(OLD) as issuer:
        settings = OidcSettings(issuer=issuer.url, audience=AUDIENCE)
        assert [key["kid"] for key in load_keys(settings)] == [OLD.kid]
        assert issuer.asked == ["/.well-known/openid-configuration", "/keys"]
        wrong: dict[str, tuple[int, bytes]] = {
            "another issuer": (200, json.dumps({"issuer": "https://x", "jwks_uri": f"{issuer.url}/keys"}).encode()),
            "a file": (200, json.dumps({"issuer": issuer.url, "jwks_uri": "file:///etc/passwd"}).encode()),
            "plain http": (200, json.dumps({"issuer": issuer.url, "jwks_uri": "http://10.0.0.1/keys"}).encode()),
            "a redirect": (302, b""),
            "an error": (500, b""),
            "no JSON": (200, b"<html>"),
            "too much": (200, b"[" + b"1," * LARGEST_BYTES + b"1]"),
            "no text": (200, b"\xff\xfe"),
        }
        for name, answer in wrong.items():
            issuer.answers["/.well-known/openid-configuration"] = answer
            with pytest.raises(KeysUnreachable):
                load_keys(settings)
            assert "/elsewhere" not in issuer.asked, name
    with pytest.raises(KeysUnreachable, match="cannot be reached"):
        load_keys(settings)


def test_a_file_of_keys_is_checked_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    settings = OidcSettings(issuer="our-issuer", audience=AUDIENCE, jwks_file=file)
    for content in (None, "no json", "{}", '{"keys": []}', json.dumps({"keys": [{"kty": "oct", "k": "eA"}]})):
        if content is not None:
            file.write_text(content)
        with pytest.raises(DocumentInvalid) as caught:
            TokenVerifier(settings)
        assert caught.value.where == "oidc.jwks_file"
    file.write_text(json.dumps({"keys": [OLD.jwk]}))
    assert subject(TokenVerifier(settings), OLD.token(iss="our-issuer")) == "ann@example.org"


@pytest.mark.parametrize(
    "issuer",
    [
        "http://login.example.org",
        "ftp://x",
        "https://",
        "https://a@b",
        "https://x/?q=1",
        "https://x#y",
        "x",
        "http://[::",
    ],
)
def test_keys_are_asked_for_over_https_only(issuer: str) -> None:
    with pytest.raises(ValidationError, match="https"):
        OidcSettings(issuer=issuer, audience=AUDIENCE)


@pytest.mark.parametrize("algorithm", ["none", "HS256", "RS1", ""])
def test_only_signatures_with_a_public_key_can_be_allowed(algorithm: str) -> None:
    with pytest.raises(ValidationError):
        OidcSettings.model_validate({"issuer": ISSUER, "audience": AUDIENCE, "algorithms": [algorithm]})
