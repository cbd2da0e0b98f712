"""What the board promises without any worker: durable, idempotent, listed in order, on both databases."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from api.errors import KeyReused
from api.jobs.board import PlanRequest
from api.jobs.dbos_board import DbosBoard
from api.jobs.system_database import status_table
from api.wire.jobs import JobSubject
from profiles.errors import DocumentInvalid, NotFound
from tests.job_requests import small_request


@pytest.fixture
def board(database_url: str) -> Iterator[DbosBoard]:
    """A board on each database in turn."""
    with DbosBoard.open(database_url) as opened:
        yield opened


def test_a_submitted_job_is_there_for_another_process(board: DbosBoard, database_url: str) -> None:
    request = small_request()
    record = board.submit(request, key=None, owner="ann")
    assert (record.status, record.owner, record.attempts) == ("queued", "ann", 0)
    assert record.problem_id == request.problem.problem_id
    assert record.subject == JobSubject(
        model=request.problem.model.name,
        cluster=request.problem.cluster.name,
        num_devices=4,
        global_batch_size=8,
        sequence_length=2048,
    )
    with DbosBoard.open(database_url) as other:
        assert other.get(record.id) == record


def test_a_job_of_a_version_that_wrote_no_subject_is_listed(board: DbosBoard) -> None:
    old = board.submit(small_request(), key=None, owner="ann")
    new = board.submit(small_request(16), key=None, owner="ann")
    rows = status_table(board._engine)
    with board._engine.begin() as connection:
        connection.execute(
            text(f"UPDATE {rows} SET attributes = :notes WHERE workflow_uuid = :job"),
            {"job": old.id, "notes": json.dumps({"problem_id": old.problem_id, "traceparent": None})},
        )
    assert board.get(old.id) == old.model_copy(update={"subject": None})
    assert {each.id: each.subject for each in board.list_jobs()} == {old.id: None, new.id: new.subject}
    assert board.cancel(new.id).subject == new.subject, "a note beside it takes nothing away"


def test_the_same_content_is_the_same_job(board: DbosBoard) -> None:
    first = board.submit(small_request(), key=None, owner="ann")
    shared = board.submit(small_request(), key=None, owner="bob")
    assert (shared.id, shared.owner, shared.num_waiting) == (first.id, "ann", 2)
    assert board.submit(small_request(priority=5), key="k", owner="bob") == shared
    assert board.submit(small_request(16), key=None, owner="ann").id != first.id
    assert board.counts().queued == 2


def test_every_documented_priority_is_taken_and_orders_the_queue(board: DbosBoard) -> None:
    priorities = [0, 100, -100, 99, -99]
    jobs = {
        board.submit(small_request(8 * (place + 1), priority=priority), key=None, owner="ann").id: priority
        for place, priority in enumerate(priorities)
    }
    # DBOS takes the smallest number first, and none below 1 (a row without a priority has 0 and overtakes all).
    rows = f"SELECT workflow_uuid, priority FROM {status_table(board._engine)} ORDER BY priority"
    with board._engine.connect() as connection:
        found = [(jobs[row[0]], int(row[1])) for row in connection.execute(text(rows)) if row[0] in jobs]
    assert [priority for priority, _ in found] == [100, 99, 0, -99, -100]
    assert all(urgency >= 1 for _, urgency in found)


def test_a_cancelled_job_is_asked_anew_except_by_its_key(board: DbosBoard) -> None:
    first = board.submit(small_request(), key="k", owner="ann")
    assert board.cancel(first.id).status == "cancelled"
    second = board.submit(small_request(), key=None, owner="ann")
    assert second.id != first.id
    assert board.submit(small_request(), key=None, owner="ann") == second
    # The key stands for its request and what became of it, whatever others ask meanwhile.
    assert board.submit(small_request(), key="k", owner="ann").id == first.id
    assert board.submit(small_request(), key="k", owner="bob").id == second.id


def test_each_caller_ends_only_their_own_interest(board: DbosBoard) -> None:
    job = board.submit(small_request(), key=None, owner="ann").id
    board.submit(small_request(), key="k", owner="bob")
    left = board.cancel(job, "ann")
    assert (left.status, left.cancel_requested, left.num_waiting) == ("queued", False, 1)
    assert [board.is_waiting(job, owner) for owner in ("ann", "bob", "eve")] == [False, True, False]
    assert board.cancel(job, "ann").status == "queued", "once more changes nothing"
    again = board.submit(small_request(), key=None, owner="ann")
    assert (again.id, again.num_waiting) == (job, 2)
    board.cancel(job, "bob")
    ended = board.cancel(job, "ann")
    assert (ended.status, ended.cancel_requested, ended.num_waiting) == ("cancelled", True, 0)
    assert board.submit(small_request(), key=None, owner="ann").id != job


def test_a_job_ends_for_everybody_where_nobody_is_named(board: DbosBoard) -> None:
    job = board.submit(small_request(), key=None, owner="ann").id
    board.submit(small_request(), key=None, owner="bob")
    assert board.cancel(job).status == "cancelled"


def test_many_who_share_jobs_leave_them_to_the_others(board: DbosBoard) -> None:
    shared, own = (board.submit(small_request(size), key=None, owner="ann").id for size in (8, 16))
    board.submit(small_request(8), key=None, owner="bob")
    ended = {each.id: each.status for each in board.cancel_many([shared, own], "ann")}
    assert ended == {shared: "queued", own: "cancelled"}


def test_joining_and_leaving_at_once_loses_nobody(board: DbosBoard) -> None:
    """Whoever is told that they wait gets an answer: a job that is being ended takes nobody in."""
    for _ in range(10):
        first = board.submit(small_request(), key=None, owner="ann")
        with ThreadPoolExecutor(2) as threads:
            leaving = threads.submit(board.cancel, first.id, "ann")
            joined = threads.submit(board.submit, small_request(), key=None, owner="bob").result()
            leaving.result()
        assert board.get(joined.id).status == "queued"
        board.cancel(joined.id, "bob")
        assert board.get(joined.id).status == "cancelled"


def test_a_content_can_be_cancelled_and_asked_many_times(board: DbosBoard) -> None:
    ids = []
    for _ in range(18):
        record = board.submit(small_request(), key=None, owner="ann")
        assert board.cancel(record.id).status == "cancelled"
        ids.append(record.id)
    assert len(set(ids)) == 18


def test_a_key_belongs_to_one_request(board: DbosBoard) -> None:
    first = board.submit(small_request(), key="k", owner="ann")
    with pytest.raises(KeyReused):
        board.submit(small_request(16), key="k", owner="ann")
    assert board.counts().queued == 1
    assert board.submit(small_request(16), key="k", owner="bob").id != first.id


@pytest.mark.parametrize("key", [None, "k"])
def test_a_hundred_equal_submissions_at_once_are_one_job(board: DbosBoard, key: str | None) -> None:
    ids = at_once(board, [small_request()] * 100, key)
    assert len(set(ids)) == 1
    assert board.counts().queued == 1


def test_one_key_with_two_contents_at_once_keeps_one(board: DbosBoard) -> None:
    refused: list[KeyReused] = []
    ids = at_once(board, [small_request(), small_request(16)] * 10, "k", refused)
    assert len(set(ids)) == 1
    assert len(refused) == 10
    assert board.counts().queued == 1


def at_once(
    board: DbosBoard, requests: list[PlanRequest], key: str | None, refused: list[KeyReused] | None = None
) -> list[str]:
    ids: list[str] = []
    together = threading.Barrier(len(requests))

    def submit(request: PlanRequest) -> None:
        together.wait()
        try:
            ids.append(board.submit(request, key=key, owner="ann").id)
        except KeyReused as error:
            if refused is None:
                raise
            refused.append(error)

    threads = [threading.Thread(target=submit, args=(request,)) for request in requests]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ids


def test_pages_hold_every_job_once_newest_first(board: DbosBoard) -> None:
    owners = ["ann", "bob"]
    jobs = [board.submit(small_request(4 * (1 + n)), key=f"k{n}", owner=owners[n % 2]).id for n in range(11)]
    board.cancel(jobs[0])
    seen: list[str] = []
    while True:
        page = board.list_jobs(before=seen[-1] if seen else None, limit=4)
        seen += [record.id for record in page]
        if len(page) < 4:
            break
    assert sorted(seen) == sorted(jobs)
    times = [board.get(job).created_at for job in seen]
    assert times == sorted(times, reverse=True)
    assert {record.id for record in board.list_jobs(owner="bob")} == set(jobs[1::2])
    assert [record.id for record in board.list_jobs(status="cancelled")] == [jobs[0]]
    assert len(board.list_jobs(status="queued", limit=5)) == 5
    assert board.list_jobs(status="running") == ()


def test_events_have_no_holes_and_can_be_resumed_anywhere(board: DbosBoard) -> None:
    job = board.submit(small_request(), key=None, owner="ann").id
    assert [(event.seq, event.status) for event in board.events(job)] == [(1, "queued")]
    assert board.events(job, after=1) == ()
    board.cancel(job)
    events = board.events(job)
    assert [(event.seq, event.status) for event in events] == [(1, "queued"), (2, "cancelled")]
    for after in range(4):
        assert board.events(job, after=after) == events[after:]


def test_cancelling_twice_changes_nothing(board: DbosBoard) -> None:
    job = board.submit(small_request(), key=None, owner="ann").id
    cancelled = board.cancel(job)
    assert (cancelled.status, cancelled.result_kind, cancelled.cancel_requested) == ("cancelled", "none", True)
    assert cancelled.finished_at is not None
    assert board.cancel(job) == cancelled


@pytest.mark.parametrize("job", ["", "none", "a" * 32 + "-1", "key-1", "%-1", "0" * 400 + "-7"])
def test_an_unknown_job_is_not_found(board: DbosBoard, job: str) -> None:
    for ask in (board.get, board.cancel, board.events):
        with pytest.raises(NotFound):
            ask(job)
    with pytest.raises(NotFound):
        board.list_jobs(before=job)


def test_a_key_is_no_job(board: DbosBoard) -> None:
    board.submit(small_request(), key="k", owner="ann")
    assert len(board.list_jobs()) == 1


def test_a_page_has_a_size(board: DbosBoard) -> None:
    with pytest.raises(DocumentInvalid):
        board.list_jobs(limit=0)


def test_many_jobs_are_looked_at_and_ended_at_once(board: DbosBoard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.jobs.dbos_board.MOST_AT_ONCE", 2)
    ids = [board.submit(small_request(8 * (number + 1)), key=None, owner="ann").id for number in range(5)]
    assert {each.id for each in board.get_many([*ids, "0" * 32 + "-1"])} == set(ids)
    ended = board.cancel_many([*ids[:3], "0" * 32 + "-1"])
    assert {each.id: (each.status, each.cancel_requested) for each in ended} == dict.fromkeys(
        ids[:3], ("cancelled", True)
    )
    assert {board.get(each).status for each in ids[3:]} == {"queued"}
    assert board.cancel_many([]) == ()
