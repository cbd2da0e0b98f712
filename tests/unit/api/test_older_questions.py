"""Bodies that clients of earlier releases send are read, and mean what they meant; new words are not mixed with old."""

from __future__ import annotations

from typing import Any

import pytest

from api.http.document_check import checked_document
from api.wire.questions import EmissionQuestion, EstimateQuestion, PlanQuestion, ThroughputQuestion
from api.wire.sweeps import SweepRequest
from planner.question.problem import Constraints
from profiles.validation import FindingsInvalid

WORKLOAD = {"global_batch_size": 256, "sequence_length": 4096, "precision": "fp8", "optimizer": "adam"}
ASKED: dict[str, Any] = {"model": "mixtral-8x7b", "cluster": "dgx-h100", "devices": 32, "workload": WORKLOAD}
OF_A_PAGE = {"target": "megatron", "pins": {"tp": 8, "sp": True}, "forbids": ["cp"], "memory_margin_fraction": 0.07}
"""The constraints of the page for new plans, as release 0.1 sent them."""
WHOLE = {
    "schema_version": 1,
    "pins": {},
    "forbids": [],
    "target": "any",
    "memory_margin_fraction": 0.06,
    "max_step_time_s": None,
    "min_tokens_per_s": None,
}
"""The constraints of a plan, as clients of release 0.1 repeated them part by part."""


@pytest.mark.parametrize(
    ("said", "backends"),
    [
        ({}, ("any",)),
        ({"constraints": {"pins": {"tp": 8}}}, ("any",)),
        ({"constraints": OF_A_PAGE}, ("megatron",)),
        ({"constraints": {"target": "any", "pins": {}, "forbids": []}}, ("unrestricted",)),
        ({"constraints": WHOLE, "framework": "tuned"}, ("unrestricted",)),
        ({"constraints": WHOLE}, ("unrestricted",)),
        ({"framework": "nanotron"}, ("nanotron",)),
        ({"framework": "megatron-2021"}, ("megatron==2.5",)),
        ({"framework": "nanotron", "constraints": {"target": "torchtitan"}}, ("torchtitan",)),
        ({"framework": "torchtitan", "constraints": {"target": "torchtitan"}}, ("torchtitan",)),
    ],
)
def test_a_question_keeps_its_meaning(said: dict[str, Any], backends: tuple[str, ...]) -> None:
    question = checked_document(PlanQuestion, {**ASKED, **said})
    assert question.constraints.backends == backends
    kept = {name: value for name, value in said.get("constraints", {}).items() if name in ("pins", "forbids")}
    assert question.constraints.pins == kept.get("pins", {})
    estimate = checked_document(EstimateQuestion, {**ASKED, **said, "strategy": {"tp": 2}})
    assert estimate.constraints == question.constraints


def test_a_curve_and_a_sweep_keep_theirs() -> None:
    curve = {"model": "llama-3.1-8b", "cluster": "dgx-h100", "device_counts": [8], "workload": WORKLOAD}
    assert checked_document(ThroughputQuestion, {**curve, "framework": "native"}).constraints.backends == ("native",)
    axes = {"models": ["llama-3.1-8b"], "clusters": ["dgx-h100"], "sequence_lengths": [4096], "global_batch_sizes": [8]}
    assert checked_document(SweepRequest, axes).constraints == Constraints()
    old = checked_document(SweepRequest, {**axes, "schema_version": 1, "framework": "nemo"})
    assert (old.constraints.backends, old.schema_version) == (("nemo",), 2)
    plain = checked_document(SweepRequest, {**axes, "schema_version": 1})
    assert plain.constraints.backends == ("unrestricted",)


@pytest.mark.parametrize(
    ("said", "backend"),
    [
        ({}, None),
        ({"backend": "torchtitan==0.2.2"}, "torchtitan==0.2.2"),
        ({"target": "torchtitan"}, "torchtitan"),
        ({"target": "torchtitan", "version": "0.2.2"}, "torchtitan==0.2.2"),
    ],
)
def test_launch_files_of_a_target(said: dict[str, Any], backend: str | None) -> None:
    assert checked_document(EmissionQuestion, {**said, "launcher": "slurm"}).backend == backend


@pytest.mark.parametrize(
    ("said", "pointer"),
    [
        ({"framework": "native", "constraints": {"backends": ["native"]}}, "/framework"),
        ({"constraints": {"backends": ["native"], "target": "native"}}, "/constraints/target"),
        ({"constraints": {"target": "../native"}}, "/constraints/backends/0"),
        ({"framework": {"name": "native"}}, "/constraints/backends/0"),
        ({"constraints": "megatron"}, "/constraints"),
        ({"constraints": {"backends": []}}, "/constraints/backends"),
        ({"constraints": {"backends": ["any", "native"]}}, "/constraints/backends"),
        ({"constraints": {"backends": ["native", "native==1"]}}, "/constraints/backends"),
    ],
)
def test_what_says_nothing_is_refused_with_its_place(said: dict[str, Any], pointer: str) -> None:
    with pytest.raises(FindingsInvalid) as refused:
        checked_document(PlanQuestion, {**ASKED, **said})
    assert pointer in {each.pointer for each in refused.value.findings}
