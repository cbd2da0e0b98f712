"""Small parts of the door: keys, rates, tags, archives, names, addresses, shared computations."""

from __future__ import annotations

import asyncio
import io
import zipfile
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, get_type_hints

import pytest
from starlette.applications import Starlette
from starlette.requests import Request

from api.access.api_keys import allows, is_good, new_key, split_key
from api.access.rates import Rates
from api.answering.plan_response import wants_job
from api.errors import RequestRefused, TooManyRequests
from api.http.archive import check_name, zip_of
from api.http.patience import ConnectionSettings
from api.http.request_body import read_body
from api.serving import check_address
from api.settings import Settings
from api.solving.flights import Flights, RecentAnswers
from api.wire.problem_details import FLAG_POINTERS, problem_details
from planner.cli.workload_flags import WorkloadFlags
from planner.errors import BackEndRefused, DocumentInvalid, NoFeasiblePlan
from planner.operations.operation import Session
from planner.operations.pools import POOLS, PoolsRequest
from planner.store.errors import StoreUnavailable
from profiles.errors import MeshwrightError
from profiles.validation import Finding, FindingsInvalid

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_key_is_proved_by_its_secret_only() -> None:
    key, record = new_key("ci", "plan", 30, NOW)
    parts = split_key(key)
    assert parts is not None
    prefix, secret = parts
    assert prefix == record.prefix
    assert secret not in repr(record)
    assert is_good(record, secret, NOW)
    assert not is_good(record, secret[:-1], NOW)
    assert not is_good(record, "", NOW)
    assert not is_good(None, secret, NOW)
    assert not is_good(record, secret, NOW + timedelta(days=31))


@pytest.mark.parametrize(
    "text", ["", "mw_", "mw_.", "mw_a.", "mw_.b", "xx_a.b", "mw_ab", "mw_" + "a" * 200 + ".b", "mw_a.é"]
)
def test_what_is_no_key(text: str) -> None:
    assert split_key(text) is None


def test_scopes_include_the_lesser_ones() -> None:
    reader, planner, admin = (new_key("x", scope, None, NOW)[1] for scope in ("read", "plan", "admin"))
    assert [allows(each, "plan") for each in (reader, planner, admin)] == [False, True, True]
    assert [allows(each, "admin") for each in (reader, planner, admin)] == [False, False, True]
    with pytest.raises(DocumentInvalid, match="scope"):
        new_key("x", "root", None)


def test_a_bucket_empties_and_refills() -> None:
    now = [0.0]
    rates = Rates(2.0, 3, lambda: now[0])
    for _ in range(3):
        rates.take("a")
    with pytest.raises(TooManyRequests) as caught:
        rates.take("a")
    assert caught.value.retry_after_s == 1
    rates.take("b")
    now[0] = 0.5
    rates.take("a")
    with pytest.raises(TooManyRequests):
        rates.take("a")


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "a/../b", "a//b", "", ".hidden", "a\\b", "a\x00b", "C:x", "a/./b"]
)
def test_no_archive_holds_a_name_that_leaves_its_folder(name: str) -> None:
    with pytest.raises(BackEndRefused):
        check_name(name)


def test_equal_content_is_an_equal_archive() -> None:
    emission = {
        "manifest": {"files": {"run.sh": {"executable": True}, "conf/a.yaml": {"executable": False}}},
        "files": {"run.sh": "#!/bin/sh\n", "conf/a.yaml": "a: 1\n"},
    }
    content = zip_of(emission)
    assert content == zip_of(emission)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == ["conf/a.yaml", "manifest.json", "run.sh"]
        assert archive.getinfo("run.sh").external_attr >> 16 == 0o100755


@pytest.mark.parametrize(
    ("prefer", "wanted"),
    [(None, False), ("respond-async", True), ("Respond-Async, wait=10", True), ("wait=10; respond-async", False)],
)
def test_what_prefer_says(prefer: str | None, wanted: bool) -> None:
    assert wants_job(prefer) is wanted


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_nobody_else_is_served_without_authentication(host: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        check_address(host, 8642, authentication=False)
    assert caught.value.exit_code == 2
    check_address(host, 8642, authentication=True)
    check_address("127.0.0.1", 8642, authentication=False)


def test_flags_become_pointers_and_hosts_stay_unnamed() -> None:
    flag = problem_details(DocumentInvalid("--devices is wrong", where="--devices", hint="set --global-batch-size"))
    assert (flag.errors[0].pointer, flag.errors[0].hint) == ("/devices", "set workload.global_batch_size")
    assert flag.detail == "devices is wrong"
    two = FindingsInvalid([Finding("/pools/0", "a", ""), Finding("/pools/1", "b", "c")], "/cluster")
    assert [each.pointer for each in problem_details(two).errors] == ["/cluster/pools/0", "/cluster/pools/1"]
    one = FindingsInvalid([Finding("/pools/0", "a", "")], "/cluster")
    assert [each.pointer for each in problem_details(one).errors] == ["/cluster/pools/0"]
    body = FindingsInvalid([Finding("/x", "a", "")], "body")
    assert [each.pointer for each in problem_details(body).errors] == ["/x"]
    away = problem_details(StoreUnavailable("away", where="postgresql://secret-host/x", hint="look there"))
    assert "secret-host" not in away.model_dump_json()
    none = problem_details(NoFeasiblePlan("nothing fits", binding="memory", pruned={"memory": 3}))
    assert (none.binding, none.pruned, none.status) == ("memory", {"memory": 3}, 422)


def test_every_flag_of_a_workload_and_of_an_emission_has_a_field() -> None:
    hints = {**get_type_hints(WorkloadFlags, include_extras=True)}
    flags = {flag for hint in hints.values() for flag in hint.__metadata__[0].param_decls if flag.startswith("--")}
    # A sample of pixels is counted before a request is sent.
    assert flags - {"--sample"} <= set(FLAG_POINTERS)
    assert {"--env", "--emit", "--from", "--image", "--hosts"} <= set(FLAG_POINTERS)


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ({"constraints": {"backends": ["megatron"]}}, "/constraints/backends"),
        ({"constraints": {"backends": ["native"], "pins": {"schedule": "zbv"}}}, "/constraints/pins"),
        ({"constraints": {"backends": ["native"], "pins": {"pp": 1}}}, "/constraints/pins"),
        ({"workload": {"precision": "fp8"}}, "/workload/precision"),
        ({"workload": {"images_per_sample": 1}}, "/workload/images_per_sample"),
        ({"model": "wan-2.1-14b"}, "/model"),
    ],
)
def test_errors_of_pools_speak_of_the_fields_of_the_request(more: dict[str, Any], pointer: str) -> None:
    body = {**POOLS.example, "launcher": None, **more}
    body["workload"] = {**POOLS.example["workload"], **more.get("workload", {})}
    with pytest.raises(MeshwrightError) as caught:
        POOLS.work(Session(plan=lambda _: pytest.fail("no plan is asked")), PoolsRequest.model_validate(body))
    told = problem_details(caught.value)
    assert told.errors[0].pointer == pointer
    assert "--" not in told.model_dump_json()


def test_equal_questions_share_one_computation() -> None:
    started = []

    async def compute() -> str:
        started.append(1)
        await asyncio.sleep(0.05)
        return "answer"

    async def ask() -> list[tuple[str, bool]]:
        flights: Flights[str] = Flights()
        first = asyncio.ensure_future(flights.share("a", compute))
        rest = [asyncio.ensure_future(flights.share("a", compute)) for _ in range(20)]
        await asyncio.sleep(0.01)
        rest[0].cancel()
        return [await first, *[await each for each in rest[1:]]]

    answers = asyncio.run(ask())
    assert len(started) == 1
    assert [joined for _, joined in answers] == [False] + [True] * 19


def test_a_failed_computation_fails_all_and_is_not_remembered() -> None:
    async def fail() -> str:
        await asyncio.sleep(0)
        raise DocumentInvalid("no")

    async def ask() -> list[object]:
        flights: Flights[str] = Flights()
        first = await asyncio.gather(*(flights.share("a", fail) for _ in range(3)), return_exceptions=True)
        second = await asyncio.gather(flights.share("a", fail), return_exceptions=True)
        return [*first, *second]

    assert all(isinstance(each, DocumentInvalid) for each in asyncio.run(ask()))


def test_the_answer_unused_for_longest_goes() -> None:
    recent: RecentAnswers[int] = RecentAnswers(2)
    recent.keep("a", 1)
    recent.keep("b", 2)
    assert recent.get("a") == 1
    recent.keep("c", 3)
    assert [recent.get(key) for key in "abc"] == [1, None, 3]


def test_a_body_that_drips_is_given_up() -> None:
    app, sent = Starlette(), 0
    app.state.service = SimpleNamespace(settings=Settings(connections=ConnectionSettings(body_s=0.05)))

    async def receive() -> dict[str, object]:
        nonlocal sent
        sent += 1
        await asyncio.sleep(0.02)
        return {"type": "http.request", "body": b" ", "more_body": True}

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "app": app}
    with pytest.raises(RequestRefused, match="not there within"):
        asyncio.run(read_body(Request(scope, receive), 1_000))
    assert sent < 10
