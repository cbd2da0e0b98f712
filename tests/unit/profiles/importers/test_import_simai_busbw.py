"""SimAI bus bandwidth tables: links by axis, never collectives with a made-up time."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.simai_busbw import FORMAT
from tests.attributes import of
from tests.importing import read, read_anyway, sample, written


def test_real_table() -> None:
    imported = read(FORMAT, sample("simai/busbw.yaml"))
    batch = imported.batches[0]
    assert not batch.collectives
    assert [(link.detail["axis"], link.detail["operation"]) for link in batch.links] == [
        ("TP", "all_reduce"), ("TP", "all_gather"), ("TP", "reduce_scatter"), ("TP", "all_to_all"),
        ("DP", "all_gather"), ("DP", "reduce_scatter"),
        ("EP", "all_gather"), ("EP", "reduce_scatter"), ("EP", "all_to_all"), ("PP", "send_recv"),
    ]  # fmt: skip
    assert of(batch.links[0], "kind", "bandwidth_bytes_per_s", "row") == ["device_to_device", 300e9, 3]
    assert of(batch.links[-1], "kind", "bandwidth_bytes_per_s", "method") == ["network", 47.5e9, "busbw-table"]
    assert imported.skipped == {"null": 3}
    assert [flag.code for flag in imported.flags] == ["unit-documented"]


def test_indentation_comments_and_a_single_node(tmp_path: Path) -> None:
    text = "run1\nTP:\n  allreduce,: 300   # inside\n  sendrecv,: 3\nEP:\n  alltoall,: 80\n"
    imported = read(FORMAT, written(tmp_path, "busbw.yaml", text), given={"num_nodes": "1"})
    assert [link.kind for link in imported.batches[0].links] == ["device_to_device", "device_to_device"]
    assert imported.skipped == {"sendrecv is not an operation that is stored": 1}


@pytest.mark.parametrize("value", ["fast", "-3", "nan", "0", "1e999"])
def test_broken_numbers(tmp_path: Path, value: str) -> None:
    imported = read(FORMAT, written(tmp_path, "b.yaml", f"x\nTP:\nallreduce,: 300\nDP:\nallreduce,: {value}\n"))
    assert [bad.where for bad in imported.bad_rows] == ["line 5"]
    assert len(imported.batches[0].links) == 1


def test_a_table_of_nulls_is_refused_and_other_yaml_does_not_match(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid, match="no bandwidth"):
        read(FORMAT, written(tmp_path, "b.yaml", "x\nTP:\nallreduce,: null\nDP:\nallreduce,: null\n"))
    assert not FORMAT.matches(written(tmp_path, "c.yaml", "TP: 8\nDP: 4\nallreduce: ring\n").head())
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "d.yaml", "x\n")])
