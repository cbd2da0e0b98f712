"""A web page must not reach the service by a name of its own (DNS rebinding), nor change anything from another site."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi.testclient import TestClient

from api.client import Client
from planner.store import open_store
from tests.job_workers import PATIENCE_S, wait_for
from tests.listening_service import listening
from tests.running_service import problem, question, service
from tests.service_processes import ServiceProcess

REBOUND = {"host": "rebound.example:8642"}
STRATEGY = {"text": "tp=4"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("hosts")
    with service(f"sqlite:///{folder / 'plans.db'}", allowed_hosts=("plans.example.org",)) as found:
        yield found


@pytest.mark.parametrize("host", ["rebound.example", "rebound.example:8642", "10.1.2.3", "localhost@x.example", ""])
@pytest.mark.parametrize("path", ["/v1/plans", "/", "/openapi.json", "/version", "/nowhere"])
def test_another_host_is_refused_whatever_it_asks(client: TestClient, host: str, path: str) -> None:
    said = problem(client.get(path, headers={"host": host}), 421, "host-refused")
    (finding,) = said["errors"]
    assert finding["pointer"] == "Host"
    assert "--allowed-host" in finding["hint"]


def test_a_rebound_page_changes_nothing(client: TestClient) -> None:
    headers = {**REBOUND, "origin": "http://rebound.example:8642", "if-none-match": "*"}
    document = question()["model"]
    problem(client.put("/v1/models/rebound", json=document, headers=headers), 421, "host-refused")
    assert client.get("/v1/models/rebound").status_code == 404


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:8642", "[::1]:8642", "plans.example.org", "plans.example.org:443"]
)
def test_names_of_the_service_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/v1/plans", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
def test_probes_ask_by_address(client: TestClient, path: str) -> None:
    assert client.get(path, headers={"host": "10.1.2.3:8642"}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["http://other.example", "https://plans.example.org.other.example", "null", "http://localhost@other.example"],
)
def test_a_page_of_another_site_changes_nothing(client: TestClient, origin: str) -> None:
    headers = {"origin": origin}
    said = problem(client.post("/v1/strategies:read", json=STRATEGY, headers=headers), 403, "origin-refused")
    assert said["errors"][0]["pointer"] == "Origin"
    problem(client.delete("/v1/models/x", headers=headers), 403, "origin-refused")
    # Reading is the browser's to refuse: no answer allows another origin to see it.
    read = client.get("/v1/plans", headers=headers)
    assert read.status_code == 200
    assert "access-control-allow-origin" not in read.headers


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8642", "http://localhost:5173", "https://plans.example.org"])
def test_pages_of_the_service_ask(client: TestClient, origin: str) -> None:
    assert client.post("/v1/strategies:read", json=STRATEGY, headers={"origin": origin}).status_code == 200


def test_a_refused_page_is_on_record(client: TestClient) -> None:
    problem(client.put("/v1/labels/x", json={}, headers={"origin": "http://recorded.example"}), 403, "origin-refused")

    def recorded() -> bool:
        events = client.get("/v1/audit", params={"phase": "refused"}).json()["events"]
        return any((each["status"], each["method"]) == (403, "PUT") for each in events)

    # Refusals are written beside the answer.
    wait_for(recorded, PATIENCE_S, "the refusal is on record")


def test_where_any_host_is_allowed_a_page_asks_only_its_own(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'plans.db'}"
    with service(url, allowed_hosts=("*",), authentication=True) as open_door:
        post = "/v1/strategies:read"
        own = {"host": "a.example", "origin": "https://a.example"}
        problem(open_door.post(post, json=STRATEGY, headers=own), 401, "not-authenticated")
        other = {"host": "a.example", "origin": "https://b.example"}
        problem(open_door.post(post, json=STRATEGY, headers=other), 403, "origin-refused")


def test_two_host_headers_or_none_reach_nobody(tmp_path: Path) -> None:
    with listening(f"sqlite:///{tmp_path / 'plans.db'}") as address:
        parts = httpx.URL(address)
        for head in (b"GET /v1/plans HTTP/1.1\r\n", b"GET /v1/plans HTTP/1.0\r\n"):
            for hosts in (b"Host: localhost\r\nHost: rebound.example\r\n", b""):
                with socket.create_connection((parts.host, parts.port or 0), timeout=300) as door:
                    door.sendall(head + hosts + b"Connection: close\r\n\r\n")
                    status = door.makefile("rb").readline().split()[1]
                assert status in {b"400", b"421"}, (head, hosts)
        with Client(address) as mine:
            assert mine.check_problem(question()).ok


def test_flag_and_environment_name_hosts_of_a_real_service(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'plans.db'}"
    open_store(url).close()
    flags = ("--jobs", "0", "--allowed-host", "a.example", "--allowed-host", "b.example")

    def status(process: ServiceProcess, host: str) -> int:
        return httpx.get(process.address + "/v1/plans", headers={"host": host}, timeout=300).status_code

    with ServiceProcess(url, tmp_path, *flags) as named:
        assert [status(named, host) for host in ("a.example", "b.example", "c.example")] == [200, 200, 421]
    environment = {"MESHWRIGHT_ALLOWED_HOSTS": "c.example,d.example"}
    with ServiceProcess(url, tmp_path, "--jobs", "0", environment=environment) as named:
        assert [status(named, host) for host in ("a.example", "c.example", "d.example")] == [421, 200, 200]
