"""Documents of version 1 are read, under their own id, as questions to back-ends of today.

``tests/golden/documents/v1`` holds plans as the last release with two words (``target``, ``framework``) stored them.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from planner.answers.explain.why import explain
from planner.backends.asked import physics_of, problem_of, software_of
from planner.backends.emission.write import read_manifest, write_emission
from planner.backends.folders.directory import check_directory
from planner.backends.folders.emit import emit_plan
from planner.plan.plan import Plan
from planner.question.older_documents import backend_of, has_older_words
from planner.question.problem import Constraints, Problem
from planner.store import open_store
from profiles.document import canonical_json

FOLDER = Path(__file__).parents[2] / "golden" / "documents" / "v1"
BACKENDS = {
    "any": "unrestricted",
    "megatron": "megatron",
    "deepspeed": "deepspeed",
    "torchtitan": "torchtitan",
    "megatron-2021": "megatron==2.5",
    "megatron-on-megatron-2021": "megatron==2.5",
    "native-on-nanotron": "native",
}
"""File -> back-end of today."""
FRAMEWORKS_OF_VERSION_1 = (
    *("tuned", "nemo", "megatron-2021", "megatron-deepspeed", "nanotron", "pytorch-fsdp", "torchtitan", "llm-foundry"),
    *("nemo-automodel", "hugging-face", "native"),
)
TARGETS_OF_VERSION_1 = (
    *("any", "megatron", "megatron-bridge", "deepspeed", "torchtitan", "native", "accelerate", "maxtext", "mindspeed"),
)


def text(name: str) -> str:
    return (FOLDER / f"{name}.json").read_text(encoding="utf-8").removesuffix("\n")


def data(name: str) -> dict[str, Any]:
    return dict(json.loads(text(name)))


def test_every_document_is_looked_at() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == set(BACKENDS)


@pytest.mark.parametrize(("name", "backend"), BACKENDS.items())
def test_a_plan_keeps_its_id_and_numbers_and_names_its_back_end(name: str, backend: str) -> None:
    plan = Plan.model_validate_json(text(name))
    assert plan.plan_id == hashlib.sha256(text(name).encode()).hexdigest()
    assert canonical_json(plan.written()) == text(name)
    assert (plan.backend, plan.release) == (backend.partition("==")[0], backend.partition("==")[2])
    assert plan.problem.constraints.backends == (backend,)
    assert software_of(plan).spelled == backend
    assert problem_of(plan) == plan.problem
    kept = set(Plan.model_fields) - {
        *("schema_version", "problem", "backend", "release", "backends", "unrestricted", "origins", "fits_probability"),
        "fastest",
    }
    assert (plan.fits_probability, plan.fastest) == (None, None)
    assert plan.outcome == plan.status
    assert plan.problem.constraints.fits is None
    now = plan.model_dump(mode="json")
    assert {field: now[field] for field in kept} == {field: data(name)[field] for field in kept}


@pytest.mark.parametrize(("name", "backend"), BACKENDS.items())
def test_a_question_and_its_constraints_are_upgraded_and_written_as_today(name: str, backend: str) -> None:
    problem = Problem.model_validate_json(canonical_json(data(name)["problem"]))
    assert problem.constraints.backends == (backend,)
    again = json.loads(problem.canonical_json())
    assert (again["schema_version"], again["constraints"]["schema_version"]) == (2, 2)
    assert "framework" not in again
    assert "target" not in again["constraints"]
    assert Problem.model_validate(again) == problem
    alone = Constraints.model_validate(data(name)["problem"]["constraints"])
    assert alone.backends == (backend_of(data(name)["problem"]["constraints"]["target"], "tuned"),)
    assert alone.pins == problem.constraints.pins


def test_a_changed_plan_is_known_by_its_own_content() -> None:
    plan = Plan.model_validate_json(text("megatron"))
    changed = plan.model_copy(update={"step_time_s": 1.0})
    assert changed.plan_id == changed.content_hash() != plan.plan_id
    assert plan.model_copy().plan_id == plan.plan_id


@pytest.mark.parametrize("name", BACKENDS)
def test_a_plan_is_stored_and_found_under_its_old_id(name: str, tmp_path: Path) -> None:
    plan = Plan.model_validate_json(text(name))
    with open_store(f"sqlite:///{tmp_path / 'plans.db'}") as store:
        assert store.save_plan(plan, 1.0) == plan.plan_id
        assert store.save_plan(plan, 1.0) == plan.plan_id
        store.label_plan("old", plan.plan_id)
        found = store.get_plan("old")
        assert found.plan_id == store.get_plan(plan.plan_id[:12]).plan_id == plan.plan_id
        assert found.problem == plan.problem
        assert store.plan_text(plan.plan_id).body == text(name)
        assert [each.plan_id for each in store.list_plans(limit=10)] == [plan.plan_id]


@pytest.mark.parametrize("name", BACKENDS)
def test_a_plan_is_explained(name: str) -> None:
    plan = Plan.model_validate_json(text(name))
    causes = explain(plan, with_neighbours=False).causes
    assert sum(cause.seconds for cause in causes) == pytest.approx(plan.step_time_s)
    assert physics_of(plan).name


@pytest.mark.parametrize("name", ["megatron", "deepspeed"])
def test_a_plan_is_emitted_under_its_old_id_and_its_folder_is_right(name: str, tmp_path: Path) -> None:
    plan = Plan.model_validate_json(text(name))
    folder = write_emission(emit_plan(plan, "torchrun"), tmp_path / "out")
    assert read_manifest(folder)["plan_id"] == plan.plan_id
    assert Plan.model_validate_json((folder / "plan.json").read_text(encoding="utf-8")).plan_id == plan.plan_id
    assert check_directory(folder) == []


@pytest.mark.parametrize("framework", FRAMEWORKS_OF_VERSION_1)
@pytest.mark.parametrize("target", TARGETS_OF_VERSION_1)
def test_every_pair_of_words_of_version_1_is_a_back_end_that_is_known(target: str, framework: str) -> None:
    old = {**data("any")["problem"], "framework": framework}
    old["constraints"] = {**old["constraints"], "target": target}
    plan = Plan.model_validate({**data("any"), "problem": old})
    assert software_of(plan).name == plan.backend
    if target != "any":
        assert plan.backend == target


@pytest.mark.parametrize("name", BACKENDS)
def test_words_of_version_1_are_read_also_where_no_version_is_said(name: str) -> None:
    old = data(name)["problem"]
    bare = {key: value for key, value in old.items() if key != "schema_version"}
    bare["constraints"] = {key: value for key, value in old["constraints"].items() if key != "schema_version"}
    assert Problem.model_validate(bare) == Problem.model_validate(old)


def test_both_words_at_once_are_refused() -> None:
    old = data("torchtitan")["problem"]
    with pytest.raises(ValidationError):
        Problem.model_validate({**old, "constraints": {"backends": ["megatron"]}, "schema_version": 2})
    with pytest.raises(ValidationError):
        Constraints.model_validate({"backends": ["megatron"], "target": "deepspeed"})


def with_images(name: str) -> dict[str, Any]:
    """A plan of today's form for a model without a tower, as releases before November 2026 let it be asked."""
    kept = Plan.model_validate_json(text(name)).model_dump(mode="json")
    workload = {**kept["problem"]["workload"], "images_per_sample": 2, "audio_clips_per_sample": 1}
    return {**kept, "problem": {**kept["problem"], "workload": workload}}


def test_images_that_no_tower_reads_are_left_out_of_questions_and_plans_that_are_read() -> None:
    stored = with_images("megatron")
    plan = Plan.model_validate_json(canonical_json(stored))
    assert plan.plan_id == hashlib.sha256(canonical_json(stored).encode()).hexdigest()
    assert plan.is_upgraded
    assert has_older_words(canonical_json(stored))
    assert plan.problem.workload.images_per_sample == plan.problem.workload.audio_clips_per_sample == 0
    assert Problem.model_validate(stored["problem"]) == plan.problem
    with pytest.raises(ValidationError, match="has no vision tower"):
        Problem(
            model=plan.problem.model,
            cluster=plan.problem.cluster,
            workload=plan.problem.workload.model_copy(update={"images_per_sample": 2}),
        )
    assert not has_older_words(canonical_json(plan.model_copy(update={"gap": 0.5}).written()))


def test_a_stored_plan_with_images_of_a_model_of_text_is_found(tmp_path: Path) -> None:
    body = canonical_json(with_images("torchtitan"))
    plan = Plan.model_validate_json(body)
    with open_store(f"sqlite:///{tmp_path / 'plans.db'}") as store:
        assert store.save_plan(plan, 1.0) == plan.plan_id
        assert store.plan_text(plan.plan_id).body == body
        assert store.get_plan(plan.plan_id).problem.workload.images_per_sample == 0
