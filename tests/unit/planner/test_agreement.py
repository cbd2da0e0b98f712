"""A workload that is none of the model is one clear error wherever a question is made."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from planner.errors import DocumentInvalid
from planner.model.builtin import builtin_model
from planner.question.complete import complete_problem
from planner.question.problem import Constraints, Problem, Workload
from planner.search.pools.problem import PoolsProblem
from profiles.catalogue import load_cluster

CASES: list[tuple[str, dict[str, Any], str]] = [
    ("t5-11b", {"training": {"kind": "lora"}}, "workload#/training"),
    ("t5-11b", {"sequences": {"kind": "packed", "mean": 100}}, "workload#/sequences"),
    ("llama-2-7b", {"sample": "81x480x832"}, "workload#/sample"),
    ("wan-2.1-14b", {"sample": "81x480x833"}, "workload#/sample"),
    ("wan-2.1-14b", {"sample": [1, 480, 832]}, "workload#/sequence_length"),
    ("wan-2.1-14b", {"training": {"kind": "lora"}}, "workload#/training"),
    ("wan-2.1-14b", {"sequences": {"kind": "packed", "mean": 100}}, "workload#/sequences"),
    ("llama-3.1-8b", {"source_length": 512}, "workload#/source_length"),
    ("llama-3.1-8b", {"training": {"kind": "full", "frozen_towers": ["vision"]}}, "workload#/training/frozen_towers"),
    ("llava-1.5-7b", {"audio_clips_per_sample": 2}, "workload#/audio_clips_per_sample"),
    ("mixtral-8x7b", {"routing": {"kind": "histogram", "tokens": [1.0, 2.0]}}, "workload#/routing/tokens"),
]


def asked(fields: dict[str, Any]) -> Workload:
    return Workload(global_batch_size=64, sequence_length=512, **fields)


@pytest.mark.parametrize(("model", "fields", "where"), CASES)
def test_it_is_an_error_of_the_input_with_its_place(model: str, fields: dict[str, Any], where: str) -> None:
    with pytest.raises(DocumentInvalid) as caught:
        complete_problem(builtin_model(model), load_cluster("dgx-h100", 8), asked(fields), Constraints())
    assert caught.value.where == where
    assert caught.value.hint


@pytest.mark.parametrize(("model", "fields", "where"), CASES)
def test_no_document_holds_such_a_question(model: str, fields: dict[str, Any], where: str) -> None:
    pointer = where.replace("workload#", "/workload").removesuffix("/tokens")
    cluster, spec = load_cluster("dgx-h100", 8), builtin_model(model)
    with pytest.raises(ValidationError, match=pointer):
        Problem(model=spec, cluster=cluster, workload=asked(fields))
    with pytest.raises(ValidationError, match=pointer):
        PoolsProblem(model=spec, clusters=(cluster,), workload=asked(fields))


@pytest.mark.parametrize("name", ["t5-11b", "wan-2.1-14b"])
def test_pools_cut_no_second_sequence(name: str) -> None:
    with pytest.raises(ValidationError, match="not cut into stages"):
        PoolsProblem(model=builtin_model(name), clusters=(load_cluster("dgx-h100", 8),), workload=asked({}))
