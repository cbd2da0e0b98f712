"""``--sample``: the tokens of a picture or video on the command line."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from planner.cli.problem_inputs import read_workload
from planner.cli.sample_size import sample_tokens
from planner.cli.workload_flags import WorkloadFlags
from planner.errors import DocumentInvalid
from planner.model.builtin import builtin_model
from planner.model.diffusers_config import model_from_diffusers_config
from planner.model.spec import ModelSpec


def _read(kind: str) -> ModelSpec:
    return model_from_diffusers_config({"_class_name": kind}, "m", "config.json")


def _flags(sample: str | None, length: int | None = None) -> WorkloadFlags:
    return WorkloadFlags(global_batch_size=64, sequence_length=length, sample=sample)


def test_a_sample_becomes_the_sequence() -> None:
    assert read_workload(_flags("81x480x832"), model=builtin_model("wan-2.1-14b")).sequence_length == 32_760


def test_text_in_the_sequence_is_counted_as_it_is_said() -> None:
    model = _read("FluxTransformer2DModel")
    said = WorkloadFlags(global_batch_size=64, source_length=77, sample="1x1024x1024")
    assert read_workload(said, model=model).sequence_length == 64 * 64 + 77
    assert read_workload(_flags("1x1024x1024"), model=model).sequence_length == 64 * 64 + 512


def test_text_that_a_file_says_is_counted_and_a_flag_stands_over_it(tmp_path: Path) -> None:
    model, file = _read("FluxTransformer2DModel"), tmp_path / "work.yaml"
    file.write_text("global_batch_size: 64\nsequence_length: 5\nsource_length: 77\n", encoding="utf-8")
    said = WorkloadFlags(file=file, sample="1x1024x1024")
    assert read_workload(said, model=model).sequence_length == 64 * 64 + 77
    assert read_workload(replace(said, source_length=100), model=model).sequence_length == 64 * 64 + 100


def test_without_a_sample_flags_stay() -> None:
    assert read_workload(_flags(None, 4096), model=builtin_model("llama-2-7b")).sequence_length == 4096


@pytest.mark.parametrize(
    ("model", "text", "said"),
    [
        ("llama-2-7b", "81x480x832", "only a diffusion transformer"),
        ("wan-2.1-14b", "480x832", "is no sample"),
        ("wan-2.1-14b", "81x480xwide", "is no sample"),
        ("wan-2.1-14b", "81x480x-832", "is no sample"),
        ("wan-2.1-14b", "81x480x9999999", "is no sample"),
        ("wan-2.1-14b", "81x480x833", "do not divide"),
    ],
)
def test_what_is_no_sample_is_told(model: str, text: str, said: str) -> None:
    with pytest.raises(DocumentInvalid, match=said):
        sample_tokens(builtin_model(model), text)


def test_two_lengths_are_refused() -> None:
    with pytest.raises(DocumentInvalid, match="one length"):
        read_workload(_flags("81x480x832", 4096), model=builtin_model("wan-2.1-14b"))


def test_where_no_model_is_read_the_tokens_are_asked_for() -> None:
    with pytest.raises(DocumentInvalid) as caught:
        read_workload(_flags("81x480x832"))
    assert "--sequence-length" in str(caught.value)
