"""Sizes as tools print them, and what the user adds to an environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importing.collective_sizes import full_tensor_bytes
from profiles.importing.environments import Batches, environment_of, finished, given_bytes_per_s, given_whole
from profiles.importing.format import ReadOptions
from profiles.importing.imported import Imported
from profiles.importing.printed_sizes import printed_size_bytes
from profiles.importing.short_lines import MAX_CHARACTERS, MAX_WORD, short_lines
from profiles.observations.records import CollectiveObservation, CollectiveOperation
from profiles.observations.timing import Timing
from tests.importing import written


@pytest.mark.parametrize(
    ("text", "expected"),
    [("512 B", (512, False)), ("0B", (0, False)), ("2.0 KB", (2048, True)), ("678.86 MB", (711_836_303, True))],
)
def test_printed_sizes(text: str, expected: tuple[int, bool]) -> None:
    assert printed_size_bytes(text) == expected


@pytest.mark.parametrize("text", ["2 kB", "x", "2", "", "-2 KB", "9999999999 EB"])
def test_other_sizes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"size|large"):
        printed_size_bytes(text)


@pytest.mark.parametrize(
    ("operation", "ranks", "expected"),
    [
        ("all_gather", 4, 40),
        ("all_to_all", 4, 40),
        ("all_reduce", 4, 10),
        ("all_reduce", None, 10),
        ("gather", None, None),
    ],
)
def test_full_tensors(operation: CollectiveOperation, ranks: int | None, expected: int | None) -> None:
    assert full_tensor_bytes(operation, 10, ranks) == expected


def test_what_the_user_gives_fills_what_the_file_leaves_open() -> None:
    options = ReadOptions({"device": "mi300x", "num_nodes": "4", "devices_per_node": "8"})
    environment = environment_of(options, "NVIDIA H100 80GB HBM3", num_nodes=2, num_devices=None)
    assert environment.device == "mi300x"
    assert environment.device_reported == "NVIDIA H100 80GB HBM3"
    assert environment.num_nodes == 2
    assert environment.devices_per_node == 8
    assert environment_of(ReadOptions(), "NVIDIA H100 80GB HBM3").device == "h100-sxm5-80gb"


@pytest.mark.parametrize("text", ["0", "-1", "x", "1.5", "\u0663", "9999999999", ""])
def test_numbers_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(DocumentInvalid) as refused:
        given_whole(ReadOptions({"group_size": text}), "group_size")
    assert "--set group_size=8" in str(refused.value)


def test_given_bandwidths_have_units() -> None:
    assert given_bytes_per_s(ReadOptions({"rate": "400 Gbit/s"}), "rate") == 50e9
    assert given_bytes_per_s(ReadOptions(), "rate") is None
    with pytest.raises(DocumentInvalid):
        given_bytes_per_s(ReadOptions({"rate": "0"}), "rate")


def test_one_batch_for_one_environment(tmp_path: Path) -> None:
    file = written(tmp_path, "a.log", "nothing\n")
    imported, batches = Imported("tool"), Batches()
    with pytest.raises(DocumentInvalid, match="nothing"):
        finished(imported, batches, file, "nothing here", "hint")
    imported.bad(7, "broken", "repair")
    with pytest.raises(DocumentInvalid) as refused:
        finished(imported, batches, file, "nothing here", "hint")
    assert "broken" in str(refused.value)
    assert "a.log:7" in str(refused.value)
    for nodes in (1, 2, 1):
        environment = environment_of(ReadOptions(), num_nodes=nodes)
        batches.of(environment).collectives.append(CollectiveObservation("all_reduce", 4, 2, Timing(1.0)))
    assert [batch.num_observations for batch in finished(imported, batches, file, "", "").batches] == [2, 1]


def test_lines_that_can_be_no_results_are_counted(tmp_path: Path) -> None:
    text = "short\n" + "x " * MAX_CHARACTERS + "\n" + "a" + "1" * MAX_WORD + "\nend\n"
    imported = Imported("tool")
    assert [line.number for line in short_lines(written(tmp_path, "a.log", text), imported)] == [1, 4]
    assert sum(imported.skipped.values()) == 2
