from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest

from planner.cli.failure import failure_of, wants_json
from planner.errors import (
    BackEndRefused,
    BudgetSpent,
    Conflict,
    DocumentInvalid,
    MeshwrightError,
    NoFeasiblePlan,
    NotFound,
    ProfileMissing,
)


@pytest.mark.parametrize(
    ("error", "slug", "code"),
    [
        (DocumentInvalid("x", where="y", hint="z"), "document-invalid", 2),
        (NotFound("x"), "not-found", 3),
        (Conflict("x"), "conflict", 4),
        (NoFeasiblePlan("x", binding="memory"), "no-feasible-plan", 5),
        (BudgetSpent("x"), "budget-spent", 6),
        (ProfileMissing("x"), "profile-missing", 7),
        (BackEndRefused("x"), "backend-refused", 8),
        (MeshwrightError("x"), "internal", 1),
        (KeyboardInterrupt(), "interrupted", 130),
        (OSError(errno.ENOSPC, "No space left on device", "out/plan.json"), "file-unusable", 2),
        (RuntimeError("boom"), "internal", 1),
        (RecursionError(), "internal", 1),
        (MemoryError(), "internal", 1),
    ],
)
def test_each_error_has_its_exit_code(error: BaseException, slug: str, code: int) -> None:
    failure = failure_of(error)
    assert (failure.slug, failure.exit_code) == (slug, code)
    assert failure.as_text().startswith(f"error[{slug}]: ")
    assert json.loads(failure.as_json())["error"]["exit_code"] == code


def test_text_has_what_where_and_hint() -> None:
    failure = failure_of(DocumentInvalid("broken", where="a.yaml#/b", hint="repair it"))
    assert failure.as_text() == "error[document-invalid]: broken\n  --> a.yaml#/b\n  hint: repair it"


def test_no_feasible_plan_says_what_binds_and_what_would_help() -> None:
    error = NoFeasiblePlan(
        "nothing fits",
        binding="memory",
        relaxations=("16 devices more", "half the batch"),
        pruned={"heads": 3, "memory": 40},
    )
    failure = failure_of(error)
    assert "pruned: memory 40 · heads 3" in failure.as_text()
    assert "16 devices more; or half the batch" in failure.as_text()
    said = json.loads(failure.as_json())["error"]
    assert (said["binding"], said["relaxations"]) == ("memory", ["16 devices more", "half the batch"])
    assert said["pruned"] == {"heads": 3, "memory": 40}


def test_a_bug_leaves_a_report_with_the_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    try:
        raise ZeroDivisionError("by zero")
    except ZeroDivisionError as error:
        failure = failure_of(error, ["plan", "--model", "x"])
    assert "\n" not in failure.what
    (bundle,) = tmp_path.glob("meshwright-bug-*.txt")
    assert str(bundle) in (failure.hint or "")
    text = bundle.read_text(encoding="utf-8")
    assert "Traceback" in text
    assert "'--model'" in text


def test_a_bug_is_reported_even_where_nothing_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nonexistent-folder")
    assert failure_of(RuntimeError("boom")).exit_code == 1


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["plan", "-o", "json"], True),
        (["plan", "--output", "json"], True),
        (["plan", "--output=json"], True),
        (["plan", "-ojson"], True),
        (["plan", "-o", "table"], False),
        (["plan", "json"], False),
        (["plan", "-o"], False),
        ([], False),
    ],
)
def test_json_errors_are_recognised_before_parsing(words: list[str], wanted: bool) -> None:
    assert wants_json(words) is wanted
