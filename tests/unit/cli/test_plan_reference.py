from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from planner.cli.plan_answer import answer_data
from planner.errors import Conflict, DocumentInvalid, NotFound
from planner.operations.plan_reference import full_document, load_plan
from planner.plan.plan import Plan
from planner.store import open_store
from planner.strategy.strategy import Strategy
from tests.plan_factory import make_plan


@pytest.fixture
def plan() -> Plan:
    return make_plan(Strategy(pp=2, num_microbatches=8, dp_shard=2))


def test_a_plan_file_gives_the_same_plan(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(full_document(plan)), encoding="utf-8")
    assert load_plan(str(path)) == plan
    assert load_plan(str(tmp_path)) == plan, "a folder that holds plan.json"


def test_the_printed_full_answer_is_a_plan_file_too(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(answer_data(plan, wall_s=1.5, full=True)), encoding="utf-8")
    assert load_plan(str(path)) == plan


def test_stdin_is_a_file_called_dash(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps(full_document(plan)).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert load_plan("-") == plan


def test_ids_prefixes_and_labels_of_stored_plans(plan: Plan) -> None:
    with open_store() as store:
        store.save_plan(plan, 1.0)
        store.label_plan("production", plan.plan_id)
    assert [load_plan(word) for word in (plan.plan_id, plan.plan_id[:8], "production")] == [plan] * 3


def test_the_short_answer_is_no_plan_file(plan: Plan, tmp_path: Path) -> None:
    path = tmp_path / "short.json"
    path.write_text(json.dumps(answer_data(plan)), encoding="utf-8")
    with pytest.raises(DocumentInvalid, match="short form") as caught:
        load_plan(str(path))
    assert "--full" in (caught.value.hint or "")


def test_an_edited_file_is_noticed(plan: Plan, tmp_path: Path) -> None:
    data = full_document(plan)
    data["step_time_s"] = 0.001
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(Conflict, match="its content is plan"):
        load_plan(str(path))


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("", DocumentInvalid, "empty"),
        ("{", DocumentInvalid, "JSON"),
        ("[]", DocumentInvalid, "not a plan"),
        ('{"a": 1}', DocumentInvalid, "unknown key 'a'"),
        ('{"a": NaN}', DocumentInvalid, "NaN"),
        ("[" * 100_000, DocumentInvalid, "deep"),
    ],
)
def test_files_that_are_no_plans(text: str, error: type[Exception], words: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(error, match=words):
        load_plan(str(path))


@pytest.mark.parametrize("name", ["missing.json", "no/such/folder", "0123456789abcdef", "unlabelled"])
def test_what_does_not_exist_is_not_found(name: str) -> None:
    with pytest.raises(NotFound) as caught:
        load_plan(name)
    assert caught.value.hint
