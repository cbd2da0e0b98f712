"""Flags of a workload: every field of the document has one, every command that asks about work has all of them."""

from __future__ import annotations

import re
from typing import Any

import pytest
import typer
from typer.main import get_command

from planner.answers.sweep.grid import Sources, grid
from planner.answers.sweep.question import SweepQuestion
from planner.cli.commands import estimate, plan, sweep, throughput
from planner.cli.problem_inputs import read_workload
from planner.cli.states_flag import states_of
from planner.cli.workload_flags import KindFlags, WorkloadFlags
from planner.errors import DocumentInvalid
from planner.model.load import load_model
from planner.question.agreement import contradictions
from planner.question.problem import Workload
from planner.question.work_kind import WorkKind
from profiles.catalogue import load_cluster
from profiles.scaling import scale_cluster

OF_FILES_ALONE = {"gradient_dtype", "dropout"}
"""Fields that a back-end or a script decides, and a workload file can say."""
SAID: dict[str, Any] = {
    "precision": "fp8",
    "fp8_recipe": "blockwise",
    "optimizer": "adam_precision_aware",
    "optimizer_states": {"first": "fp8", "second": "fp16"},
    "source_length": 512,
    "routing": {"kind": "even"},
}


def flags_of(command: Any) -> dict[str, Any]:
    app = typer.Typer()
    command.register(app)
    return {each.name: each for each in get_command(app).params}


@pytest.mark.parametrize("command", [plan, estimate, throughput, sweep], ids=lambda command: command.__name__)
def test_a_command_about_work_has_every_flag_of_it(command: Any) -> None:
    names = set(KindFlags.__dataclass_fields__)
    assert names <= set(flags_of(command))
    assert command is sweep or set(WorkloadFlags.__dataclass_fields__) <= set(flags_of(command))


def test_every_field_of_a_workload_has_a_flag() -> None:
    said = KindFlags(
        fp8_recipe="mxfp8", optimizer="sgd", optimizer_states="first=bf16", source_length=1, images="2",
        audio_clips="1", routing="even", training="full", sequences="packed,mean=100", sample="81x480x832",
    ).said()  # fmt: skip
    said |= KindFlags(images="mean:2", audio_clips="0:1+1:3").said()
    assert set(said) | OF_FILES_ALONE | {"precision"} == set(WorkKind.model_fields)


def test_flags_become_the_workload() -> None:
    flags = WorkloadFlags(
        global_batch_size=8, sequence_length=1024, source_length=512, optimizer="adam_precision_aware",
        optimizer_states="first=fp8,second=fp16", images="3",
    )  # fmt: skip
    found = read_workload(flags)
    assert (found.source_length, found.images_per_sample) == (512, 3)
    assert found.optimizer_states is not None
    assert (found.optimizer_states.first, found.optimizer_states.second, found.optimizer_states.master) == (
        *("fp8", "fp16"),
        "fp32",
    )


@pytest.mark.parametrize("text", ["", "fp8", "third=fp8", "first=fp8,first=bf16"])
def test_states_of_another_form_are_refused(text: str) -> None:
    with pytest.raises(DocumentInvalid) as raised:
        states_of(text)
    assert raised.value.where == "--optimizer-states"
    assert "first=fp8,second=fp16" in (raised.value.hint or "")


def test_a_format_that_no_state_has_is_refused_with_the_workload() -> None:
    flags = WorkloadFlags(
        global_batch_size=8, sequence_length=8, optimizer="adam_precision_aware", optimizer_states="master=fp8"
    )
    with pytest.raises(DocumentInvalid, match="fp16"):
        read_workload(flags)


def test_cells_of_a_sweep_hold_all_that_it_says() -> None:
    question = SweepQuestion.model_validate(
        {"models": ["t5-11b"], "clusters": ["dgx-h100"], "sequence_lengths": [512], "global_batch_sizes": [64], **SAID}
    )
    sources = Sources(load_model, load_cluster, scale_cluster, lambda _device: None)
    problem = grid(question, sources)[0].problem
    assert problem is not None
    held = problem.workload.model_dump(mode="json", include=set(SAID), exclude_defaults=True)
    expected = Workload.model_validate({"global_batch_size": 1, "sequence_length": 1, **SAID})
    assert held == expected.model_dump(mode="json", include=set(SAID), exclude_defaults=True)


def test_a_sweep_refuses_what_a_workload_refuses() -> None:
    axes = {"models": ["m"], "clusters": ["c"], "sequence_lengths": [512], "global_batch_sizes": [64]}
    with pytest.raises(ValueError, match=re.escape("use precision fp8")):
        SweepQuestion.model_validate({**axes, "fp8_recipe": "mxfp8"})


@pytest.mark.parametrize(("field", "tower"), [("images_per_sample", "vision"), ("audio_clips_per_sample", "audio")])
def test_items_of_a_tower_that_the_model_has_not_are_one_clear_error(field: str, tower: str) -> None:
    workload = Workload.model_validate({"global_batch_size": 8, "sequence_length": 512, field: 2})
    model = load_model("llama-3.1-8b")
    assert contradictions(model, workload) == ((f"/workload/{field}", f"{model.name} has no {tower} tower"),)
