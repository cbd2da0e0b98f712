"""``--sequences`` and the document that it means."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from planner.cli.sequences_flag import read_lengths, sequences_of
from planner.errors import DocumentInvalid
from planner.question.problem import Workload
from planner.question.sequences import MOST_LENGTHS, Sequences


def test_options_follow_the_kind() -> None:
    found = Sequences.model_validate(sequences_of("packed,p50=300,p99=4000,mean=560,packing=balanced"))
    assert (found.kind, found.percentiles, found.mean) == ("packed", ((50.0, 300.0), (99.0, 4000.0)), 560.0)
    assert found.packed_by == "balanced"
    assert sequences_of(None) is None
    assert Sequences.model_validate(sequences_of("padded,mean=512")).packed_by is None


@pytest.mark.parametrize("text", ["", "dense", "packed,mean", "packed,mean=long", "packed,q50=3", "padded,file=/none"])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(DocumentInvalid):
        sequences_of(text)


WRONG: tuple[dict[str, Any], ...] = (
    {},
    {"mean": 0},
    {"mean": 512, "percentiles": {"100": 4096}},
    {"mean": 900, "percentiles": {"5": 1000}},
    {"mean": 10, "percentiles": {"99": 1000}},
    {"percentiles": {"50": 300}},
    {"percentiles": {"50": 300, "90": 200}, "mean": 400},
    {"percentiles": {"50": 300, "120": 900}, "mean": 400},
    {"percentiles": {"median": 300}, "mean": 400},
    {"percentiles": {"50": 1000}, "mean": 100},
    {"histogram": {"0": 4}},
    {"histogram": {"512": -1}},
    {"histogram": {"512": 0}},
    {"histogram": {"512": 1}, "mean": 512},
    {"kind": "padded", "mean": 512, "packing": "greedy"},
    {"mean": 512, "packing": "random"},
)


@pytest.mark.parametrize("said", WRONG)
def test_what_contradicts_itself_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Sequences.model_validate({"kind": "packed", **said})


@pytest.mark.parametrize(
    ("said", "mean"),
    [
        ({"mean": 512}, 512),
        ({"mean": 480, "percentiles": {"50": 300, "90": 1200, "99": 2000}}, 480),
        ({"percentiles": {"50": 300, "84.1344746": 600}}, 300 * 2 ** (0.5 * math.log(2))),
        ({"percentiles": {"50": 300}, "mean": 450}, 450),
        ({"percentiles": {"99": 4000}, "mean": 640}, 640),
        ({"histogram": {"100": 3, "500": 1}}, 200),
    ],
)
def test_lengths_have_the_mean_and_the_percentiles(said: dict[str, Any], mean: float) -> None:
    sequences = Sequences.model_validate({"kind": "padded", **said})
    lengths = sequences.lengths(20_000)
    assert sum(lengths) / len(lengths) == pytest.approx(mean, rel=5e-3)
    assert lengths == sorted(lengths)
    for at, tokens in sequences.percentiles or ():
        if at < 100:
            assert lengths[round(at / 100 * len(lengths))] == pytest.approx(tokens, rel=0.02)


def test_a_file_counts_documents(tmp_path: Path) -> None:
    file = tmp_path / "lengths"
    for text in ("512\n512\n1024\n", "512,2\n1024 1\n", "[512, 512, 1024]", json.dumps({"512": 2, "1024": 1})):
        file.write_text(text, encoding="utf-8")
        assert read_lengths(file) == [(512.0, 2.0), (1024.0, 1.0)]
    for text in ("", "a b", "1 2 3", "[[1]]", "-4"):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(DocumentInvalid):
            read_lengths(file)


def test_many_lengths_become_fewer_with_the_same_mean(tmp_path: Path) -> None:
    file = tmp_path / "lengths"
    file.write_text("\n".join(str(100 + length) for length in range(MOST_LENGTHS + 500)), encoding="utf-8")
    found = read_lengths(file)
    assert len(found) <= MOST_LENGTHS
    total = sum(count for _, count in found)
    assert total == MOST_LENGTHS + 500
    assert sum(length * count for length, count in found) / total == pytest.approx(100 + (MOST_LENGTHS + 499) / 2)


def test_the_document_comes_back_and_nothing_said_changes_no_identity() -> None:
    plain = Workload(global_batch_size=8, sequence_length=1024)
    assert "sequences" not in plain.model_dump(mode="json")
    said = Sequences.model_validate({"kind": "packed", "percentiles": {"99": 4000, "50": 300}, "mean": 560})
    workload = plain.model_copy(update={"sequences": said})
    again = Workload.model_validate_json(workload.canonical_json())
    assert again == workload
    assert again.content_hash() == workload.content_hash()
