"""A line of the log: whole, of the request that it belongs to, and without secrets."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest

from api.access.api_keys import new_key
from api.telemetry.logs import CONTEXT, FIELDS, JsonLines, TextLines, without_secrets
from tests.token_issuer import Signer


def record(message: str, *arguments: Any, **extra: Any) -> logging.LogRecord:
    made = logging.LogRecord("meshwright.api", logging.INFO, __file__, 1, message, arguments, None)
    vars(made).update(extra)
    return made


def test_a_json_line_has_its_context_and_its_fields() -> None:
    token = CONTEXT.set({"request_id": "r1", "job_id": "j1"})
    try:
        said = record("took %d\ns", 3, **{FIELDS: {"status": 200, "duration_s": 0.25, "principal": None}})
        line = JsonLines().format(said)
        text = TextLines().format(said)
    finally:
        CONTEXT.reset(token)
    assert "\n" not in line
    data = json.loads(line)
    assert data.pop("at").endswith("+00:00")
    assert data == {
        "level": "info",
        "logger": "meshwright.api",
        "message": "took 3\ns",
        "request_id": "r1",
        "job_id": "j1",
        "status": 200,
        "duration_s": 0.25,
    }
    assert text.endswith(r"INFO meshwright.api took 3\ns request_id=r1 job_id=j1 status=200 duration_s=0.25")


def test_what_was_sent_makes_no_line_of_its_own() -> None:
    evil = 'ann"\n2026-01-01 INFO meshwright.audit all is well'
    said = record("%s", evil, **{FIELDS: {"principal": evil}})
    assert len(TextLines().format(said).splitlines()) == 1
    assert len(JsonLines().format(said).splitlines()) == 1


def test_an_exception_stays_inside_its_json_line() -> None:
    try:
        raise ValueError("no")
    except ValueError:
        said = record("failed", exc_info=sys.exc_info())
    assert "ValueError: no" in json.loads(JsonLines().format(said))["exception"]
    assert len(JsonLines().format(said).splitlines()) == 1
    assert "Traceback" in TextLines().format(said)


KEY = new_key("x", "read", None)[0]
TOKEN = Signer("one", curve=True).token()


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"the key {KEY} came", KEY.partition(".")[2]),
        (f"'authorization': 'Bearer {KEY}'", KEY.partition(".")[2]),
        (f"Authorization: bearer {TOKEN}", TOKEN.partition(".")[2]),
        (f"token={TOKEN}", TOKEN.rpartition(".")[2]),
        ("Basic dXNlcjpodW50ZXIy", "dXNlcjpodW50ZXIy"),
        ("postgresql+psycopg://meshwright:hunter2@db:5432/x", "hunter2"),
        ("could not connect to postgresql://u:hunter2@db/x?sslmode=require", "hunter2"),
    ],
    # Keys and tokens are new in every process, and the names of tests must not be.
    ids=["key", "header of a dict", "header", "assignment", "basic", "address", "address with options"],
)
def test_secrets_are_blotted_out_wherever_they_stand(text: str, secret: str) -> None:
    assert secret in text
    assert secret not in without_secrets(text)
    assert secret not in TextLines().format(record("%s", text))
    assert secret not in JsonLines().format(record("ok", **{FIELDS: {"detail": text}}))


@pytest.mark.parametrize(
    "text", ["GET /v1/plans/{plan} 200", "plan 0a1b2c3d.json", "http://127.0.0.1:8642/livez", "mw_0a1b2c3d"]
)
def test_other_words_stay(text: str) -> None:
    assert without_secrets(text) == text
