"""The real command, the real server, a real socket."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.command_line import REPOSITORY, shell_environment
from tests.running_service import question
from tests.token_issuer import AUDIENCE, ISSUER, Signer

START_S = 300


@contextmanager
def serving(*flags: str, folder: Path, database: str | None = None) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "planner.cli.main", "serve", "--port", str(port), "--processes", "1", *flags]
    log = (folder / "log").open("wb")
    process = subprocess.Popen(
        [*command, "--database", database or str(folder / "plans.db")],
        cwd=REPOSITORY, env=shell_environment(), stdout=log, stderr=log,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        end_s = time.monotonic() + START_S
        while True:
            try:
                httpx.get(f"{address}/livez", timeout=1)
                break
            except httpx.TransportError:
                assert process.poll() is None, (folder / "log").read_text()
                assert time.monotonic() < end_s, "the server did not start"
                time.sleep(0.1)
        yield address, process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        log.close()


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "planner.cli.main", *arguments],
        cwd=REPOSITORY, env=shell_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_key_a_server_a_plan_and_a_clean_end(tmp_path: Path) -> None:
    database = str(tmp_path / "plans.db")
    made = command("token", "create", "--name", "ci", "--days", "1", "--database", database, "-o", "json")
    key = json.loads(made.stdout)["key"]
    listed = json.loads(command("token", "list", "--database", database, "-o", "json").stdout)
    assert [(row["name"], row["state"]) for row in listed] == [("ci", "good")]
    assert key.partition(".")[2] not in json.dumps(listed)
    with serving("--auth", "keys", "--jobs", "0", folder=tmp_path) as (address, process):
        assert httpx.post(f"{address}/v1/plans", json=question()).status_code == 401
        headers = {"authorization": f"Bearer {key}"}
        answer = httpx.post(f"{address}/v1/plans", json=question(), headers=headers, timeout=START_S)
        assert answer.status_code == 200, answer.text
        plan_id = answer.json()["plan_id"]
        assert "server" not in answer.headers
        with socket.create_connection(("127.0.0.1", httpx.URL(address).port or 0)) as raw:
            raw.sendall(b"GARBAGE\r\n\r\n")
            assert b"400" in raw.recv(200)
        process.send_signal(signal.SIGTERM)
        # uvicorn ends by raising the signal again once everything is closed.
        assert process.wait(timeout=START_S) in {0, -signal.SIGTERM}
    shown = command("plans", "show", plan_id[:12], "--database", database, "-o", "json")
    assert json.loads(shown.stdout)["plan_id"] == plan_id
    log = (tmp_path / "log").read_text()
    assert "Traceback" not in log
    assert key.partition(".")[2] not in log
    assert json.loads(command("token", "revoke", listed[0]["prefix"], "--database", database, "-o", "json").stdout)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.1"])
def test_it_refuses_to_be_reachable_without_authentication(tmp_path: Path, host: str) -> None:
    refused = command("serve", "--host", host, "--database", str(tmp_path / "plans.db"))
    assert refused.returncode == 2
    assert re.search(r"error\[document-invalid\].*reached by others", refused.stderr)
    assert "--auth keys" in refused.stderr
    assert not (tmp_path / "plans.db").exists()


def test_a_database_that_cannot_be_used_is_one_error(tmp_path: Path) -> None:
    broken = tmp_path / "plans.db"
    broken.write_text("this is no database, and long enough to be looked at " * 20)
    refused = command("serve", "--port", "0", "--database", str(broken))
    assert refused.returncode == 2
    assert "error[store-corrupt]" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_file_of_settings_opens_the_door_for_tokens(tmp_path: Path) -> None:
    signer = Signer("one")
    (tmp_path / "keys.json").write_text(json.dumps({"keys": [signer.jwk]}))
    settings = tmp_path / "settings.yaml"
    settings.write_text(
        f"oidc:\n  issuer: {ISSUER}\n  audience: {AUDIENCE}\n  jwks_file: {tmp_path / 'keys.json'}\n"
        "  scopes: {meshwright:admin: read}\n"
    )
    flags = ("--auth", "keys", "--jobs", "0", "--settings", str(settings))
    with serving(*flags, folder=tmp_path) as (address, _):
        assert httpx.get(f"{address}/v1/plans").status_code == 401
        headers = {"authorization": f"Bearer {signer.token()}"}
        assert httpx.get(f"{address}/v1/plans", headers=headers).status_code == 200
        assert httpx.post(f"{address}/v1/plans", json=question(), headers=headers).status_code == 403
    assert signer.token().rpartition(".")[2] not in (tmp_path / "log").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("oidc: {issuer: http://login.example.org, audience: a}\n", "https"),
        ("oidc: {issuer: https://x, audience: a, jwks_file: /nowhere}\n", "cannot be read"),
        ("oidc: {issuer: https://x, audience: a, algorithms: [HS256]}\n", "algorithms"),
        ("burst: many\n", "burst"),
        ("brust: 7\n", "brust"),
        ("- 7\n", "mapping"),
    ],
)
def test_settings_that_cannot_be_used_are_one_error(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "settings.yaml").write_text(text)
    refused = command(
        "serve", "--auth", "keys", "--settings", str(tmp_path / "settings.yaml"), "--database", str(tmp_path / "p.db")
    )
    assert refused.returncode == 2
    assert said in refused.stderr
    assert "Traceback" not in refused.stderr


def test_tokens_without_authentication_are_refused(tmp_path: Path) -> None:
    (tmp_path / "settings.yaml").write_text("oidc: {issuer: https://x, audience: a}\n")
    refused = command("serve", "--settings", str(tmp_path / "settings.yaml"))
    assert refused.returncode == 2
    assert "--auth keys" in refused.stderr


def test_each_request_is_one_json_line_and_no_line_has_a_secret(tmp_path: Path) -> None:
    database = str(tmp_path / "plans.db")
    made = command("token", "create", "--name", "ci", "--scope", "admin", "--database", database, "-o", "json")
    key, token = json.loads(made.stdout)["key"], Signer("one", curve=True).token()
    prefix, secret = key.removeprefix("mw_").split(".")
    with serving("--auth", "keys", "--jobs", "0", "--log-format", "json", folder=tmp_path) as (address, process):
        with httpx.Client(base_url=address, timeout=START_S) as client:
            good = {"authorization": f"Bearer {key}"}
            client.get("/v1/plans", headers={**good, "x-request-id": "one"})
            client.get("/v1/plans", headers={**good, "x-request-id": "no id\tof ours"})
            client.get("/v1/plans", headers={"authorization": f"Bearer {token}", "x-request-id": "two"})
            client.get(f"/v1/plans/x{secret}", headers={**good, "x-request-id": "three"}, params={"key": key})
            client.get(f"/{key}", headers={"x-request-id": "four"})
            client.put("/v1/labels/x", json={"plan": key}, headers={**good, "x-request-id": "five"})
            client.post("/v1/plans", content=b"{", headers={**good, "x-request-id": "six", "cookie": key})
        with socket.create_connection(("127.0.0.1", httpx.URL(address).port or 0)) as raw:
            raw.sendall(f"GARBAGE {key}\r\n\r\n".encode())
            raw.recv(200)
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=START_S)
    log = (tmp_path / "log").read_text()
    lines = [json.loads(line) for line in log.splitlines()]
    assert all({"at", "level", "logger", "message"} <= set(line) for line in lines)
    requests = {line["request_id"]: line for line in lines if line["logger"] == "meshwright.access"}
    assert {name: requests[name]["status"] for name in ("one", "two", "three", "four", "five", "six")} == {
        "one": 200, "two": 401, "three": 404, "four": 404, "five": 404, "six": 415,
    }  # fmt: skip
    one = requests["one"]
    assert (one["method"], one["route"], one["principal"]) == ("GET", "/v1/plans", prefix)
    assert one["duration_s"] > 0
    assert requests["four"]["route"] == "unmatched"
    assert "no id" not in log
    assert secret not in log
    assert not [part for part in token.split(".") if part in log]
