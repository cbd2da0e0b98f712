"""Bearer tokens at the real door: who gets in, who does not, and what they are told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.access.api_keys import new_key
from api.access.oidc.settings import OidcSettings
from planner.store import open_store
from tests.running_service import question, service
from tests.token_issuer import AUDIENCE, ISSUER, Signer, forgeries, issuing

SIGNER = Signer("2026-01")
FORGERIES = forgeries(SIGNER)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder: Path = tmp_path_factory.mktemp("oidc")
    keys = folder / "keys.json"
    keys.write_text(json.dumps({"keys": [SIGNER.jwk, Signer("2025-12", curve=True).jwk]}))
    oidc = OidcSettings(issuer=ISSUER, audience=AUDIENCE, jwks_file=keys)
    with service(f"sqlite:///{folder / 'plans.db'}", authentication=True, oidc=oidc, burst=10_000) as found:
        yield found


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_a_good_token_gets_what_its_scopes_allow(client: TestClient) -> None:
    reader, planner = (bearer(SIGNER.token(scope=f"meshwright:{word}")) for word in ("read", "plan"))
    assert client.get("/v1/plans", headers=reader).status_code == 200
    refused = client.post("/v1/plans", json=question(), headers=reader)
    assert (refused.status_code, refused.json()["slug"]) == (403, "scope-missing")
    assert refused.headers["www-authenticate"] == 'Bearer error="insufficient_scope", scope="plan"'
    made = client.put("/v1/requests/one", json=question(), headers=planner)
    assert made.status_code == 200, made.text
    assert client.get("/v1/requests/one", headers=planner).status_code == 200
    other = bearer(SIGNER.token(sub="bob", scope="meshwright:plan"))
    assert client.get("/v1/requests/one", headers=other).status_code == 404, "requests belong to their subject"
    nothing = client.get("/v1/plans", headers=bearer(SIGNER.token(scope="openid")))
    assert nothing.status_code == 403


@pytest.mark.parametrize("name", FORGERIES)
def test_every_forgery_is_refused(client: TestClient, name: str) -> None:
    headers = [("authorization", value) for value in FORGERIES[name]]
    for method, path in (("GET", "/v1/plans"), ("POST", "/v1/plans"), ("PUT", "/v1/clusters/x")):
        response = client.request(method, path, headers=headers)
        assert (response.status_code, response.json()["slug"]) == (401, "not-authenticated"), response.text
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert response.headers["content-type"] == "application/problem+json"
        assert not any(
            len(part) > 20 and part in response.text for value in FORGERIES[name] for part in value.split(".")
        )


def test_what_is_wrong_is_said_as_rfc_6750_wants(client: TestClient) -> None:
    assert client.get("/v1/plans").headers["www-authenticate"] == "Bearer"
    expired = client.get("/v1/plans", headers={"authorization": FORGERIES["expired"][0]})
    assert expired.headers["www-authenticate"] == 'Bearer error="invalid_token"'
    assert "expired" in expired.json()["detail"]


def test_keys_and_tokens_live_together_and_each_needs_authentication(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'plans.db'}"
    key, record = new_key("ci", "read", None)
    with open_store(database) as store:
        store.service().add_api_key(record)
    with issuing(SIGNER) as issuer:
        oidc = OidcSettings(issuer=issuer.url, audience=AUDIENCE)
        with service(database, authentication=True, oidc=oidc) as client:
            assert client.get("/v1/plans", headers=bearer(key)).status_code == 200
            assert issuer.asked == [], "a key is none of the issuer's business"
            assert client.get("/v1/plans", headers=bearer(SIGNER.token(iss=issuer.url))).status_code == 200
            assert client.get("/v1/plans", headers=bearer(SIGNER.token())).status_code == 401
            assert client.get("/v1/plans", headers=bearer("mw_00000000.wrong")).status_code == 401
            assert len(issuer.asked) == 2
    with service(database, authentication=True) as client:
        assert client.get("/v1/plans", headers=bearer(SIGNER.token())).status_code == 401, "no issuer, no tokens"


def test_an_issuer_that_is_away_is_a_503(tmp_path: Path) -> None:
    with issuing(SIGNER) as issuer:
        oidc = OidcSettings(issuer=issuer.url, audience=AUDIENCE)
    with service(f"sqlite:///{tmp_path / 'plans.db'}", authentication=True, oidc=oidc) as client:
        away = client.get("/v1/plans", headers=bearer(SIGNER.token(iss=issuer.url)))
        assert (away.status_code, away.json()["slug"], away.headers["retry-after"]) == (503, "service-busy", "5")
        assert issuer.url not in away.text
        assert client.get("/livez").status_code == 200
