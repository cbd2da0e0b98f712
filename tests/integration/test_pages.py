"""The web pages: one document for every screen, assets for ever, a strict policy, and nothing in the way of the API."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from api.routes import pages
from tests.running_service import service

PAGE = b'<!doctype html><script type="module" src="/assets/index-Ab_1-x.js"></script>'
SCRIPT = b"console.log(1);" * 100
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with service(f"sqlite:///{tmp_path_factory.mktemp('pages') / 'plans.db'}") as found:
        yield found


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "static" / "assets").mkdir(parents=True)
    (tmp_path / "static" / "index.html").write_bytes(PAGE)
    (tmp_path / "static" / "assets" / "index-Ab_1-x.js").write_bytes(SCRIPT)
    (tmp_path / "static" / "manifest.json").write_bytes(b"{}")
    (tmp_path / "secret.js").write_bytes(b"secret")
    monkeypatch.setattr(pages, "STATIC", tmp_path / "static")
    return tmp_path / "static"


@pytest.mark.parametrize("path", ["/", "/plans", "/plans/dense", "/plans/a/b/c", "/jobs/1", "/compare", "/accuracy"])
def test_every_screen_has_the_one_document(client: TestClient, bundle: Path, path: str) -> None:
    found = client.get(path)
    assert (found.status_code, found.content) == (200, PAGE)
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    assert found.headers["cache-control"] == "private, no-cache"
    assert client.head(path).status_code == 200


@pytest.mark.parametrize(
    "path", ["/v1", "/v1/", "/v1/nothing", "/nothing", "/plansx", "/assets", "/index.html", "/static"]
)
def test_other_paths_stay_problems(client: TestClient, bundle: Path, path: str) -> None:
    found = client.get(path)
    assert (found.status_code, found.json()["slug"]) == (404, "not-found")
    assert found.headers["content-type"] == "application/problem+json"


def test_nothing_but_our_own_is_loaded_and_nothing_inline(client: TestClient, bundle: Path) -> None:
    found = client.get("/plans")
    policy = dict(each.strip().split(" ", 1) for each in found.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'self'"
    assert "script-src" not in policy  # falls back to 'self': nothing inline, no eval
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["object-src"] == "'none'"
    assert found.headers["x-content-type-options"] == "nosniff"


def test_a_page_that_did_not_change_keeps_its_policy(client: TestClient, bundle: Path) -> None:
    first = client.get("/")
    same = client.get("/", headers={"if-none-match": first.headers["etag"]})
    assert (same.status_code, same.content) == (304, b"")
    # The browser replaces the headers that it keeps with these.
    assert same.headers["content-security-policy"] == first.headers["content-security-policy"]
    (bundle / "index.html").write_bytes(PAGE + b" ")
    assert client.get("/", headers={"if-none-match": first.headers["etag"]}).status_code == 200


def test_assets_are_packed_and_kept_for_ever(client: TestClient, bundle: Path) -> None:
    plain = client.get("/assets/index-Ab_1-x.js", headers={"accept-encoding": "identity"})
    assert plain.content == SCRIPT
    assert "content-encoding" not in plain.headers
    packed = client.get("/assets/index-Ab_1-x.js", headers={"accept-encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) == len(gzip.compress(SCRIPT, 9, mtime=0)) < len(SCRIPT)
    assert packed.content == SCRIPT  # unpacked by the client
    for found in (plain, packed):
        assert found.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert found.headers["content-type"] == "text/javascript; charset=utf-8"
        assert found.headers["vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    "name",
    [
        "nothing.js",
        "..%2f..%2fsecret.js",
        "%2e%2e/manifest.json",
        "../manifest.json",
        "%2e%2e",
        ".hidden",
        "a%00b.js",
        "x" * 300,
    ],
)
def test_no_other_file_can_be_read(client: TestClient, bundle: Path, name: str) -> None:
    found = client.get(f"/assets/{name}")
    assert (found.status_code, found.json()["slug"]) == (404, "not-found")


def test_pages_are_only_read(client: TestClient, bundle: Path) -> None:
    refused = client.post("/plans", json={})
    assert (refused.status_code, refused.json()["slug"]) == (405, "method-not-allowed")
    assert refused.headers["allow"] == "GET, HEAD"


def test_without_a_bundle_the_service_says_how_to_make_one(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "STATIC", tmp_path)
    found = client.get("/plans/dense")
    assert found.status_code == 404
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    assert "make web" in found.text
    assert client.get("/v1/plans").status_code == 200


def test_pages_are_no_part_of_the_api_document(client: TestClient) -> None:
    assert not {"/", "/plans", "/assets/{name}"} & set(client.get("/openapi.json").json()["paths"])


def test_the_screens_are_those_of_the_router() -> None:
    source = (REPOSITORY / "web" / "src" / "router.tsx").read_text()
    roots = {match.split("/")[1] for match in re.findall(r'path: "(/[^"]+)"', source)}
    assert roots == set(pages.SCREENS)


def test_the_real_bundle_has_what_its_page_names(client: TestClient) -> None:
    if not (pages.STATIC / "index.html").exists():
        pytest.skip("the web pages are not built (make web)")
    page = client.get("/").text
    named = re.findall(r'(?:src|href)="(/[^"]+)"', page)
    assert named
    assert all(name.startswith("/assets/") and client.get(name).status_code == 200 for name in named)
    assert not re.findall(r"<script(?![^>]*\bsrc=)|<style|\bon\w+=", page), "the policy forbids inline code"
