"""nnScaler's collective profiles: the real file, sizes by hand, broken lists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.nnscaler_comm import FORMAT
from profiles.observations.timing import Timing
from tests.importing import read, read_anyway, sample, written


def test_sixteen_mi200(tmp_path: Path) -> None:
    imported = read(FORMAT, sample("nnscaler/mi200_comm_intra_16.json"), given={"device": "mi250x-gcd"})
    (batch,) = imported.batches
    assert (len(batch.collectives), imported.bad_rows) == (48, [])
    first = {each.operation: each for each in reversed(batch.collectives)}
    assert {each.group_size for each in batch.collectives} == {16}
    # 0.25 MB is 2^18 bytes; all to all shares them out over the ranks before it starts.
    assert {name: each.size_bytes for name, each in first.items()} == {
        "all_gather": 2**18, "all_reduce": 2**18, "reduce_scatter": 2**18, "all_to_all": 2**14,
    }  # fmt: skip
    assert first["all_reduce"].timing == Timing(0.0001537322998046875, "mean")
    assert batch.collectives[11].size_bytes == 512 * 2**20
    assert [flag.code for flag in imported.flags] == ["nodes-unknown"]


def test_ranks_come_from_the_name_or_the_user(tmp_path: Path) -> None:
    text = json.dumps({"all gather": [[1.0], [0.5]], "all reduce": [[1.0], [0.5]]})
    with pytest.raises(DocumentInvalid, match="number of ranks"):
        read(FORMAT, written(tmp_path, "profile.json", text))
    found = read(FORMAT, written(tmp_path, "profile.json", text), given={"group_size": "4", "num_nodes": "2"})
    assert {(each.group_size, each.num_nodes) for each in found.batches[0].collectives} == {(4, 2)}
    assert found.flags == []


@pytest.mark.parametrize(
    "lists", [[[1.0, 2.0], [0.5]], [[1.0]], "x", [[-1.0], [0.5]], [[1.0], [0.0]], [[1.0], [None]], [[True], [0.5]]]
)
def test_broken_lists_are_reported(tmp_path: Path, lists: object) -> None:
    text = json.dumps({"all gather": [[1.0], [0.5]], "all reduce": [[1.0], [0.5]], "all to all": lists})
    imported = read(FORMAT, written(tmp_path, "intra_2.json", text))
    assert len(imported.bad_rows) == 1
    assert len(imported.batches[0].collectives) == 2


@pytest.mark.parametrize("text", ["[]", "{", "{}", '{"all gather": 3}'])
def test_other_documents_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "intra_2.json", text)])
