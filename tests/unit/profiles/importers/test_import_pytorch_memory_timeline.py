"""The peak of a PyTorch memory timeline, and what it is made of."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.pytorch_memory_timeline import FORMAT
from profiles.observations.records import IterationObservation
from tests.importing import read, read_anyway, sample, written

START = 1_696_966_047_000_000_000
RAW = [
    [-1, 1, 1000, 0], [START, 2, 300, 4], [START + 5, 3, -300, 4], [START + 5, 3, 300, 5], [START + 9, 2, 50, 7],
    [START + 2_000_000, 4, -300, 5],
]  # fmt: skip


def observation(folder: Path, content: object, name: str = "memory.json") -> IterationObservation:
    (batch,) = read(FORMAT, written(folder, name, json.dumps(content))).batches
    (found,) = batch.iterations
    return found


def test_peak_of_a_real_resnet_50() -> None:
    imported = read(FORMAT, sample("torch/hta_memory_timeline.raw.gz"))
    (found,) = imported.batches[0].iterations
    assert found.timing is None
    assert found.peak_allocated_bytes == 3_082_832_104
    # 25.6 million parameters of four bytes, one momentum each.
    assert found.detail["parameter_bytes_at_peak"] == 102_440_608
    assert found.detail["optimizer_state_bytes_at_peak"] == 102_228_128
    assert found.detail["activation_bytes_at_peak"] == 2_592_465_920
    assert imported.facts["span_s"] == pytest.approx(0.987186231)


def test_a_new_version_of_a_tensor_replaces_the_old_one(tmp_path: Path) -> None:
    found = observation(tmp_path, RAW)
    assert found.peak_allocated_bytes == 1350
    assert found.detail["gradient_bytes_at_peak"] == 300
    assert found.detail["activation_bytes_at_peak"] == 0


def test_the_coalesced_form_has_nine_columns(tmp_path: Path) -> None:
    sizes = [[0, 1000, 0, 0, 0, 0, 0, 0, 0], [0, 1000, 0, 0, 0, 300, 0, 0, 50], [0, 1000, 0, 0, 0, 0, 0, 0, 0]]
    found = observation(tmp_path, [[1795275077064409, 1795275077064410, 1795275077064420], sizes])
    assert found.peak_allocated_bytes == 1350
    assert found.detail["activation_bytes_at_peak"] == 300
    assert found.detail["unknown_bytes_at_peak"] == 50


def test_what_the_user_adds(tmp_path: Path) -> None:
    file = written(tmp_path, "memory.json", json.dumps(RAW))
    imported = read(FORMAT, file, given={"device": "h100-sxm5-80gb", "micro_batch_size": "4", "model": "m"})
    (found,) = imported.batches[0].iterations
    assert (found.micro_batch_size, found.model) == (4, "m")
    assert imported.batches[0].environment.device == "h100-sxm5-80gb"


def test_broken_events_are_bad_rows(tmp_path: Path) -> None:
    broken = [[START, 9, 10, 0], [START, 2, 1e30, 0], "x", [START, 2, True, 0], [START, 2, 10, 11]]
    imported = read_anyway(FORMAT, [written(tmp_path, "memory.json", json.dumps([*RAW, *broken]))])
    assert [each.where for each in imported.bad_rows] == ["6", "7", "8", "9", "10"]
    assert imported.batches[0].iterations[0].peak_allocated_bytes == 1350


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (json.dumps(RAW)[:60], "breaks off at byte 60"),
        ("[]", "not a list of events"),
        ("{}", "not a list of events"),
        ("[[-1, 1, 0, 0]]", "never holds a byte"),
        ("[[1, 2], [[0]]]", "2 times and 1 rows"),
        ("[[1795275077064409], [[0, 1]]]", "nine sizes"),
        ("[[-1, 1, NaN, 0]]", "not"),
    ],
)
def test_hostile_content_is_one_clear_error(tmp_path: Path, content: str, what: str) -> None:
    with pytest.raises(DocumentInvalid, match=what):
        read_anyway(FORMAT, [written(tmp_path, "memory.json", content)])


def test_a_snapshot_is_a_pickle_and_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="pickle"):
        read_anyway(FORMAT, [written(tmp_path, "snapshot.pickle", pickle.dumps({"segments": []}))])


def test_other_lists_are_not_taken(tmp_path: Path) -> None:
    for text in ("[[1, 2, 3, 4], [5, 6, 7, 8]]", "[[0.5, 1]]", "[1795275077064409]", '[{"ph": "X"}]'):
        assert not FORMAT.matches(written(tmp_path, "other.json", text).head())
