"""``--server``: the same question here and there, the same answer printed by the same code, the same way to fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.access.api_keys import new_key
from planner.backends.emission.write import changed_files, read_manifest
from planner.operations.plan_reference import read_plan_file
from planner.store import open_store
from tests.board_in_memory import MemoryBoard
from tests.command_line import Ran, run_here
from tests.listening_service import listening
from tests.running_service import SMALL_MODEL

WORK = ("--global-batch-size", "16", "--sequence-length", "2048")
CHANGES_WITH_TIME = {"wall_s", "created_at"}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    database = f"sqlite:///{tmp_path_factory.mktemp('service') / 'plans.db'}"
    with listening(database, MemoryBoard(database)) as found:
        yield found


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("model") / "small.json"
    file.write_text(json.dumps(SMALL_MODEL), encoding="utf-8")
    return str(file)


def small(model: str) -> tuple[str, ...]:
    return ("--model", model, "--cluster", "dgx-a100-80g", "--devices", "8", *WORK)


def without_time(value: Any) -> Any:
    """The answer without what no two runs share."""
    if isinstance(value, dict):
        return {key: without_time(each) for key, each in value.items() if key not in CHANGES_WITH_TIME}
    return [without_time(each) for each in value] if isinstance(value, list) else value


def ok(ran: Ran) -> Ran:
    assert ran.exit_code == 0, ran.stderr
    return ran


def _content(path: Path) -> Any:
    """What is in a file; documents are mappings, whose order means nothing."""
    return json.loads(path.read_text()) if path.name == "plan.json" else path.read_bytes()


def report(ran: Ran) -> list[str]:
    """The lines of a plan's table, without the wall clock and where the plan is kept."""
    return [line for line in ok(ran).stdout.splitlines() if line and not line.startswith(("stored ", "searched"))]


def same(address: str, *words: str, output: str = "json") -> Any:
    """The answer, which must be the same with the service and without."""
    here, there = ok(run_here(*words, "-o", output)), ok(run_here(*words, "-o", output, "--server", address))
    if output != "json":
        assert there.stdout == here.stdout
        return there.stdout
    assert without_time(there.json()) == without_time(here.json())
    return there.json()


@pytest.mark.slow
def test_plan_and_what_is_asked_about_it(address: str, model: str, tmp_path: Path) -> None:
    plan = same(address, "plan", *small(model))
    words = ("plan", *small(model))
    assert report(run_here(*words, "--server", address)) == report(run_here(*words, "--reuse"))
    full = same(address, "plan", *small(model), "--full", "--top", "3")
    assert full["problem"]["model"]["name"] == SMALL_MODEL["name"]
    identity, other = plan["plan_id"], same(address, "plan", *small(model), "--pin", "tp=8")["plan_id"]
    assert same(address, "plans", "show", identity[:10])["plan_id"] == identity
    assert "problem" in same(address, "plans", "export", identity)
    for words in (
        ("explain", identity),
        ("explain", identity, "--brief"),
        ("explain", identity, "--why-not", "tp=8", "--why-not", "sp=false"),
        ("diff", identity, other),
        ("sensitivity", identity, "--no-replan", "--changes=-30,30"),
        ("replan", identity, "--devices", "16"),
        ("replan", identity, "--devices", "16", "--top", "2"),
    ):
        same(address, *words)
        same(address, *words, output="table")
    larger = same(address, "replan", identity, "--devices", "16")["new_plan_id"]
    fewer = same(address, "replan", larger, "--lost-nodes", "0")
    assert (fewer["devices_before"], fewer["devices_after"], fewer["devices_kept"]) == (16, 8, 8)
    ok(run_here("plans", "export", other, "--server", address, "--out", str(tmp_path / "other.json")))
    assert same(address, "diff", identity, str(tmp_path / "other.json"))["b"] == other
    labelled = ok(run_here("plans", "label", identity, "production", "--server", address, "-o", "json")).json()
    assert labelled == {"label": "production", "version": 1, "plan_id": identity}
    rows = ok(run_here("plans", "list", "--server", address, "-o", "json", "--limit", "500")).json()
    assert next(row for row in rows if row["plan_id"] == identity)["labels"] == ["production"]
    assert [row["plan_id"] for row in rows[1:]] == [
        row["plan_id"]
        for row in ok(
            run_here("plans", "list", "--server", address, "-o", "json", "--after", rows[0]["plan_id"])
        ).json()
    ]
    assert "production" in ok(run_here("plans", "list", "--server", address)).stdout


@pytest.mark.slow
def test_estimate_and_throughput(address: str, model: str) -> None:
    for words in (("--strategy", "tp=2,mbs=1"), ("--strategy", "pp=2", "--layers", "3,1", "--full")):
        same(address, "estimate", *small(model), *words)
    same(address, "estimate", *small(model), "--strategy", "tp=2", output="table")
    # Another batch than elsewhere: a stored proof would answer on one side only.
    work = ("--global-batch-size", "32", "--sequence-length", "2048")
    counts = ("--model", model, "--cluster", "dgx-a100-80g", *work, "--devices", "8,16,7", "--budget", "60")
    curve = same(address, "throughput", *counts, "--price", "2.5")
    assert [(point["num_devices"], point["fits"]) for point in curve["points"]][:2] == [(8, True), (16, True)]
    table = same(address, "throughput", *counts, output="table")
    assert "cost of 1 M tokens" in table


def test_launch_files_and_documents_are_the_same(address: str, model: str, tmp_path: Path) -> None:
    wanted = ("--emit", "megatron,deepspeed", "--launcher", "slurm")
    folders = {"here": tmp_path / "here", "there": tmp_path / "there"}
    answers = []
    for name, folder in folders.items():
        files = ("--out", str(folder), "--plan-out", str(folder / "plan.json"), "--trace", str(folder / "trace.json"))
        where = ("--server", address) if name == "there" else ()
        ran = ok(run_here("plan", *small(model), *wanted, *files, *where, "-o", "json"))
        answers.append(json.loads(ran.stdout.replace(str(folder), "FOLDER")))
    assert without_time(answers[0]) == without_time(answers[1])
    assert changed_files(folders["there"] / "megatron", read_manifest(folders["there"] / "megatron")) == ()
    found = {
        name: {path.relative_to(folder): _content(path) for path in folder.rglob("*") if path.is_file()}
        for name, folder in folders.items()
    }
    assert found["here"] == found["there"]
    identity = read_plan_file(folders["there"] / "plan.json").plan_id
    for extra in ((), ("--switches", "2")):
        out = tmp_path / f"emitted{len(extra)}"
        words = ("emit", identity, "--backend", "megatron", "--launcher", "slurm", "--out", str(out), *extra)
        there = ok(run_here(*words, "--server", address, "-o", "json")).json()
        assert changed_files(out, read_manifest(out)) == ()
        assert ok(run_here(*words, "-o", "json")).json() == there


@pytest.mark.slow
def test_the_catalogue(address: str, model: str) -> None:
    for words in (
        *(("models", "list"), ("clusters", "list"), ("devices", "list")),
        *(("models", "show", "llama-3.1-8b"), ("models", "show", model)),
        *(("clusters", "show", "dgx-h100"), ("clusters", "show", "DGX-H100", "--devices", "32")),
        ("devices", "show", "h100-sxm5-80gb"),
    ):
        same(address, *words)
        same(address, *words, output="table")


@pytest.mark.parametrize(
    ("words", "exit_code"),
    [
        (("plan", *("--cluster", "dgx-a100-80g", "--devices", "8", *WORK, "--model", "llama-9b")), 3),
        (("plan", *("--cluster", "dgx-x100", "--devices", "8", *WORK)), 3),
        (("plan", *("--cluster", "dgx-a100-80g", "--devices", "12", *WORK)), 2),
        (("plan", *("--cluster", "dgx-a100-80g", "--devices", "8", *WORK, "--pin", "tp=8", "--pin", "pp=8")), 5),
        (("plan", *("--cluster", "dgx-a100-80g", "--devices", "8", *WORK, "--backend", "none-such")), 3),
        (("plan", *("--cluster", "dgx-a100-80g", "--devices", "8", *WORK, "--objective", "devices")), 2),
        (("estimate", *("--cluster", "dgx-a100-80g", "--devices", "8", *WORK, "--strategy", "tp=3")), 2),
        (("plans", "show", "ffffffffffff"), 3),
        (("plans", "list", "--limit", "0"), 2),
        (("plans", "label", "ffffffffffff", "production"), 3),
        (("explain", "no-such-label"), 3),
        (("diff", "ffffffffffff", "./nothing.json"), 3),
        (("replan", "ffffffffffff", "--devices", "8"), 3),
        (("devices", "show", "h1000"), 3),
    ],
)
def test_it_fails_as_it_fails_here(words: tuple[str, ...], exit_code: int, address: str, model: str) -> None:
    given = words if words[0] not in {"plan", "estimate"} or "--model" in words else (*words, "--model", model)
    here, there = run_here(*given, "-o", "json"), run_here(*given, "-o", "json", "--server", address)
    assert (here.exit_code, there.exit_code) == (exit_code, exit_code), (here.stderr, there.stderr)
    assert there.stdout == ""
    assert there.error()["slug"] == here.error()["slug"]
    assert there.error()["what"]


def test_a_strategy_that_does_not_fit_is_printed_and_refused(address: str) -> None:
    words = ("estimate", "--model", "llama-3.1-70b", "--cluster", "dgx-h100", "--devices", "8", *WORK)
    ran = [run_here(*words, "--strategy", "tp=1", "-o", "json", *where) for where in ((), ("--server", address))]
    assert [each.exit_code for each in ran] == [5, 5]
    assert without_time(ran[0].json()) == without_time(ran[1].json())
    assert ran[0].error() == ran[1].error()


def test_what_a_service_cannot_do_is_said(address: str, model: str, tmp_path: Path) -> None:
    unknown = (
        (("--pool", "dgx-h100:8"), "--pool"),
        (("--pareto",), "--pareto"),
        (("--no-store",), "--no-store"),
    )
    for words, flag in unknown:
        ran = run_here("plan", *small(model), *words, "--server", address, "-o", "json")
        assert (ran.exit_code, ran.stdout) == (4, "")
        assert flag in ran.error()["what"]
    both = run_here("plans", "list", "--server", address, "--database", str(tmp_path / "x.db"), "-o", "json")
    assert (both.exit_code, both.error()["where"]) == (4, "--database")
    file = tmp_path / "plan.json"
    file.write_text("{}")
    assert run_here("explain", str(file), "--server", address).exit_code == 4
    alone: tuple[tuple[str, ...], ...] = (
        ("shard",),
        ("check", "x"),
        ("db", "upgrade"),
        ("profile", "list"),
        ("serve",),
    )
    for name in alone:
        ran = run_here(*name, "--server", address, "-o", "json")
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert "a service answers: plan, estimate" in ran.stderr
    assert run_here("jobs", "list").exit_code == 2
    gone = run_here("plans", "list", "--server", "http://127.0.0.1:9", "-o", "json")
    assert (gone.exit_code, gone.error()["slug"]) == (2, "service-unreachable")


@pytest.mark.parametrize("url", ["localhost:1", "ftp://x", "http://user:pw@host"])
def test_no_address_is_an_input_error(url: str) -> None:
    ran = run_here("plans", "list", "--server", url, "-o", "json")
    assert (ran.exit_code, ran.error()["where"]) == (2, "--server")
    assert "pw" not in ran.stderr


def test_the_environment_names_the_service_and_the_key(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = f"sqlite:///{tmp_path / 'plans.db'}"
    key, record = new_key("test", "plan", 1)
    reader, reading = new_key("reader", "read", 1)
    with open_store(database) as store:
        store.service().add_api_key(record)
        store.service().add_api_key(reading)
    with listening(database, MemoryBoard(database), authentication=True) as address:
        monkeypatch.setenv("MESHWRIGHT_SERVER", address)
        refused = run_here("plan", *small(model), "-o", "json")
        assert (refused.exit_code, refused.error()["slug"]) == (2, "not-authenticated")
        monkeypatch.setenv("MESHWRIGHT_API_KEY", reader)
        weak = run_here("plan", *small(model), "-o", "json")
        assert (weak.exit_code, weak.error()["slug"]) == (2, "scope-missing")
        monkeypatch.setenv("MESHWRIGHT_API_KEY", key)
        made = ok(run_here("plan", *small(model), "-o", "json"))
        assert key.partition(".")[2] not in made.stdout + made.stderr
        identity = made.json()["plan_id"]
        assert ok(run_here("plans", "show", identity, "-o", "json")).json()["plan_id"] == identity
        # Files of the plan's own back-end are read: no key to plan is needed.
        monkeypatch.setenv("MESHWRIGHT_API_KEY", reader)
        ok(run_here("emit", identity, "--out", str(tmp_path / "files")))
        other = run_here("emit", identity, "--backend", "deepspeed", "--out", str(tmp_path / "other"), "-o", "json")
        assert (other.exit_code, other.error()["slug"]) == (2, "scope-missing")
        monkeypatch.setenv("MESHWRIGHT_API_KEY", key)
        # Where a database is named, it is meant; and a command of this machine runs as ever.
        elsewhere = run_here("plans", "show", identity, "--database", str(tmp_path / "other.db"))
        assert elsewhere.exit_code == 3
        assert ok(run_here("plans", "list", "--server", "", "-o", "json")).json() == []
        assert run_here("profile", "list", "-o", "json").exit_code == 0


def test_jobs_are_seen_watched_and_cancelled(tmp_path: Path) -> None:
    from api.client import Client
    from api.wire.jobs import JobRecord
    from tests.running_service import question

    database = f"sqlite:///{tmp_path / 'plans.db'}"
    board = MemoryBoard(database, paused=True)
    with listening(database, board) as address, Client(address) as client:
        job = client.submit_plan(question())
        assert isinstance(job, JobRecord)
        where = ("--server", address, "-o", "json")
        assert [each["id"] for each in ok(run_here("jobs", "list", "--status", "queued", *where)).json()] == [job.id]
        assert ok(run_here("jobs", "show", job.id, *where)).json()["status"] == "queued"
        assert ok(run_here("jobs", "cancel", job.id, *where)).json()["status"] == "cancelled"
        watched = ok(run_here("jobs", "watch", job.id, *where))
        assert [each["status"] for each in watched.json()["events"]] == ["queued", "cancelled"]
        assert "2: cancelled" in watched.stderr
        listed = ok(run_here("jobs", "list", "--server", address)).stdout
        shown = ok(run_here("jobs", "show", job.id, "--server", address)).stdout
        asked = job.subject
        assert asked is not None
        about = f"{asked.model} on {asked.num_devices} devices of {asked.cluster}"
        assert job.id in listed
        assert about in listed
        assert about in shown
        assert run_here("jobs", "show", "nothing", *where).exit_code == 3
