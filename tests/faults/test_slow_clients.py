"""Clients that are slow on purpose, many at once, and bodies without end, against the real server on a real socket."""

from __future__ import annotations

import http.client
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from planner.store import open_store
from tests.e2e.test_serve import command, serving
from tests.plan_factory import make_plan
from tests.running_service import question

MIB = 2**20
PATIENCE_S = 180.0
"""How long a test waits for what the server does within a second or two; the machine may be busy."""
SETTINGS = "connections: {head_s: 1.0, keep_alive_s: 1, answer_s: 1.0, most: 250}\n"
HEAD = b"POST /v1/plans HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """Its address, and the id of its process."""
    folder: Path = tmp_path_factory.mktemp("slow")
    (folder / "settings.yaml").write_text(SETTINGS)
    with open_store(str(folder / "plans.db")) as store:
        store.label_plan("stored", store.save_plan(make_plan(), 0.1))
    with serving("--jobs", "0", "--settings", str(folder / "settings.yaml"), folder=folder) as (address, process):
        yield address, process.pid


def connect(address: str) -> socket.socket:
    url = httpx.URL(address)
    return socket.create_connection((url.host, url.port or 0), timeout=PATIENCE_S)


def is_ended(client: socket.socket) -> bool:
    """Whether the server ends the connection while we wait."""
    try:
        while client.recv(65_536):
            continue
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def is_ended_while_dripping(client: socket.socket, drop: bytes) -> bool:
    """The same while we send a drop now and then."""
    end_s = time.monotonic() + PATIENCE_S
    try:
        while time.monotonic() < end_s:
            client.sendall(drop)
            time.sleep(0.05)
    except OSError:
        return True
    return False


def resident_bytes(process: int, name: str = "VmHWM") -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text(), re.MULTILINE)
    assert found is not None
    return int(found.group(1)) * 1024


@pytest.mark.parametrize("beginning", [b"", b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-A: "])
def test_two_hundred_idle_connections_starve_nobody_and_end(server: tuple[str, int], beginning: bytes) -> None:
    address, _ = server
    clients = [connect(address) for _ in range(200)]
    try:
        for client in clients:
            client.sendall(beginning)
        for _ in range(5):
            assert httpx.get(f"{address}/v1/plans/stored", timeout=PATIENCE_S).status_code == 200
        assert all(map(is_ended, clients))
    finally:
        for client in clients:
            client.close()


def test_two_hundred_slow_bodies_starve_nobody(server: tuple[str, int]) -> None:
    address, process = server
    before_bytes = resident_bytes(process)
    clients = [connect(address) for _ in range(200)]
    try:
        for client in clients:
            client.sendall(HEAD + b"Content-Length: 1000\r\n\r\n")
        for _ in range(10):
            for client in clients:
                client.sendall(b" ")
            assert httpx.get(f"{address}/v1/plans/stored", timeout=PATIENCE_S).status_code == 200
    finally:
        for client in clients:
            client.close()
    assert resident_bytes(process) - before_bytes < 32 * MIB


def test_a_head_that_comes_in_drops_is_given_up(server: tuple[str, int]) -> None:
    address, _ = server
    with connect(address) as client:
        client.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        assert is_ended_while_dripping(client, b"a")


def test_more_connections_than_allowed_push_out_idle_ones(server: tuple[str, int]) -> None:
    address, _ = server
    clients = [connect(address) for _ in range(300)]
    try:
        assert httpx.get(f"{address}/v1/plans/stored", timeout=PATIENCE_S).status_code == 200
        assert all(map(is_ended, clients))
    finally:
        for client in clients:
            client.close()


def test_a_head_without_end_is_refused(server: tuple[str, int]) -> None:
    address, _ = server
    with connect(address) as client:
        client.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 20_000)
        answer = client.recv(1_000)
        assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large")
        assert b"application/problem+json" in answer
        assert is_ended(client)


def test_a_head_that_stops_half_way_is_told_so(server: tuple[str, int]) -> None:
    address, _ = server
    with connect(address) as client:
        client.sendall(b"GET /livez HTTP/1.1\r\nHost: loc")
        assert client.recv(1_000).startswith(b"HTTP/1.1 408 Request Timeout")
        assert is_ended(client)


def test_a_connection_can_be_used_again_while_it_is_not_silent(server: tuple[str, int]) -> None:
    url = httpx.URL(server[0])
    connection = http.client.HTTPConnection(url.host, url.port, timeout=PATIENCE_S)
    connection.connect()
    client = connection.sock
    for _ in range(3):
        connection.request("GET", "/livez")
        answer = connection.getresponse()
        assert (answer.status, bool(answer.read())) == (200, True)
        assert connection.sock is client, "the connection was not kept"
    assert is_ended(client)
    connection.close()


@pytest.mark.parametrize("with_length", [True, False])
def test_a_hundred_megabytes_are_refused_early_and_kept_nowhere(server: tuple[str, int], with_length: bool) -> None:
    address, process = server
    httpx.post(f"{address}/v1/plans", json=question(), timeout=PATIENCE_S)
    before_bytes = resident_bytes(process)
    size_bytes, sent_bytes = 100 * MIB, 0
    length = f"Content-Length: {size_bytes}\r\n\r\n" if with_length else "Transfer-Encoding: chunked\r\n\r\n"
    piece = b" " * MIB
    framed = piece if with_length else b"%x\r\n" % len(piece) + piece + b"\r\n"
    with connect(address) as client:
        client.sendall(HEAD + length.encode())
        if with_length:
            assert client.recv(1000).startswith(b"HTTP/1.1 413"), "before a byte of the body"
        try:
            while sent_bytes < size_bytes:
                client.sendall(framed)
                sent_bytes += len(piece)
        except OSError:
            # The server may have hung up on the rest.
            assert sent_bytes < size_bytes
        if not with_length and sent_bytes == size_bytes:
            client.sendall(b"0\r\n\r\n")
            assert client.recv(1000).startswith(b"HTTP/1.1 413")
    assert resident_bytes(process) - before_bytes < 16 * MIB
    assert httpx.get(f"{address}/livez", timeout=PATIENCE_S).status_code == 200


def test_the_rest_of_a_refused_body_may_not_drip_for_ever(server: tuple[str, int]) -> None:
    address, _ = server
    with connect(address) as client:
        client.sendall(HEAD + b"Content-Length: 100000000\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 413")
        assert is_ended_while_dripping(client, b" ")


def test_a_client_that_does_not_read_is_left(server: tuple[str, int]) -> None:
    """It asks on and on for a plan and takes nothing: what was sent to it must not stay in memory."""
    address, process = server
    descriptors = Path(f"/proc/{process}/fd")
    with connect(address) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(0.5)
        request = b"GET /v1/plans/stored HTTP/1.1\r\nHost: localhost\r\n\r\n"
        ended_s = time.monotonic() + PATIENCE_S
        cut = False
        while not cut and time.monotonic() < ended_s:
            try:
                client.sendall(request * 200)
            except TimeoutError:
                continue
            except OSError:
                cut = True
        assert cut
    assert len(list(descriptors.iterdir())) < 100


def test_limits_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("connections: {head_s: 0, mots: 3}\n")
    refused = command("serve", "--settings", str(tmp_path / "settings.yaml"), "--database", str(tmp_path / "plans.db"))
    assert refused.returncode == 2
    assert "/connections/head_s" in refused.stderr
    assert "/connections/mots" in refused.stderr
    assert "Traceback" not in refused.stderr
