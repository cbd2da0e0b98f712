"""Contest instances: read exactly, refused with one clear error, solved from the command line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.errors import DocumentInvalid, NotFound
from planner.shard.instance import read_instance
from planner.shard.integer_lists import integer_lists
from tests.command_line import run_here

SAMPLE = Path(__file__).parents[2] / "samples" / "iopddl" / "asplos-2025-iopddl-G.json.gz"


def small() -> dict[str, Any]:
    nodes = {"intervals": [[0, 4], [1, 3], [2, 2]], "costs": [[5, 1], [0, 2], [3]], "usages": [[1, 9], [2, 2], [7]]}
    edges = {"nodes": [[0, 1], [1, 2]], "costs": [[0, 10**18, 4, 0], [1, 2]]}
    return {"problem": {"name": "small", "nodes": nodes, "edges": edges, "usage_limit": 8}}


def written(folder: Path, document: Any) -> Path:
    path = folder / "instance.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_a_sample_is_read_as_json_reads_it() -> None:
    problem = read_instance(SAMPLE)
    document = json.loads(gzip.decompress(SAMPLE.read_bytes()))["problem"]
    assert problem.node_costs.tolist() == [cost for costs in document["nodes"]["costs"] for cost in costs]
    assert problem.usages.tolist() == [usage for usages in document["nodes"]["usages"] for usage in usages]
    assert problem.edge_costs.tolist() == [cost for costs in document["edges"]["costs"] for cost in costs]
    assert problem.edge_nodes.tolist() == document["edges"]["nodes"]
    assert np.stack([problem.live_from, problem.live_until], axis=1).tolist() == document["nodes"]["intervals"]
    assert problem.capacity == document["usage_limit"]


@pytest.mark.parametrize(
    ("text", "numbers", "lengths"),
    [
        (b"[]", [], []),
        (b" [ [ ] , [1,-2] ]\n", [1, -2], [0, 2]),
        (b"[[0],[1000000000000000000]]", [0, 10**18], [1, 1]),
    ],
)
def test_lists_of_integers_are_read(text: bytes, numbers: list[int], lengths: list[int]) -> None:
    found = integer_lists(text)
    assert found is not None
    assert (found[0].tolist(), found[1].tolist()) == (numbers, lengths)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[",
        b"[[1]",
        b"[[1,]]",
        b"[[1],]",
        b"[[1.5]]",
        b"[[NaN]]",
        b"[[01]]",
        b"[[-]]",
        b"[[[1]]]",
        b"[1]",
        b"[]]",
        *b"[[1e3]]|[[true]]|[[9223372036854775808]]|[[99999999999999999999]]|[[1 2]]|[,]".split(b"|"),
    ],
)
def test_anything_else_is_not(text: bytes) -> None:
    assert integer_lists(text) is None


def put(*path: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(document: dict[str, Any]) -> None:
        place: Any = document
        for key in path[:-1]:
            place = place[key]
        if value is None:
            del place[path[-1]]
        else:
            place[path[-1]] = value

    return change


NODES, EDGES = ("problem", "nodes"), ("problem", "edges")


@pytest.mark.parametrize(
    ("change", "says", "where"),
    [
        (put(*EDGES, "costs", 0, value=[1, 2, 3]), "edge 0 between node 0 (2 options)", "/problem/edges/costs/0"),
        (put(*NODES, "intervals", 1, value=[-1, 3]), "node 1 is negative", "/problem/nodes/intervals/1"),
        (put(*NODES, "intervals", 1, value=[3, 1]), "node 1 ends before it begins", "/problem/nodes/intervals/1"),
        (put(*NODES, "intervals", 1, value=[3]), "node 1 has 1 numbers", "/problem/nodes/intervals/1"),
        (put(*NODES, "usages", value=None), "missing required field `usages`", None),
        (put("problem", "usage_limit", value=None), "missing required field `usage_limit`", None),
        (put(*NODES, "costs", 0, value=[1.5, 2]), "Expected `int`", "/problem/nodes/costs"),
        (put(*NODES, "costs", 0, value=[float("nan"), 2]), "malformed", None),
        (put(*NODES, "costs", 0, value=[10**19, 2]), "does not fit in 64 bits", "/problem/nodes/costs/0/0"),
        (put(*NODES, "costs", 0, value=[]), "node 0 has no options", "/problem/nodes/costs/0"),
        (put(*NODES, "usages", 0, value=[1]), "node 0 has 2 costs and 1 usages", "/problem/nodes/usages/0"),
        (put(*NODES, "usages", 1, value=[1, -4]), "node 1 has the negative usage -4", "/problem/nodes/usages/1"),
        (put(*EDGES, "nodes", 1, value=[1, 3]), "edge 1 joins 1 and 3", "/problem/edges/nodes/1"),
        (put(*EDGES, "nodes", 1, value=[1, 1]), "joins node 1 to itself", "/problem/edges/nodes/1"),
        (put(*EDGES, "nodes", 1, value=[1]), "edge 1 names 1 nodes", "/problem/edges/nodes/1"),
        (put(*EDGES, "costs", value=[[0, 0, 0, 0]]), "2 pairs of nodes and 1 cost tables", "/problem/edges/costs"),
        (put(*NODES, "intervals", value=[[0, 1]]), "1 intervals for 3 nodes", "/problem/nodes/intervals"),
        (put("problem", "usage_limit", value=-1), "usage_limit is -1", "/problem/usage_limit"),
    ],
)
def test_a_wrong_instance_is_refused(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], says: str, where: str | None
) -> None:
    document = small()
    change(document)
    with pytest.raises(DocumentInvalid) as caught:
        read_instance(written(tmp_path, document))
    assert says in caught.value.what
    assert caught.value.hint
    assert where is None or str(caught.value.where).endswith(where)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000, '{"problem": 1}', "\x1f\x8bnot gzip"])
def test_what_is_no_instance_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "instance.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(DocumentInvalid):
        read_instance(path)


def test_a_cut_gzip_file_and_a_missing_one(tmp_path: Path) -> None:
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(SAMPLE.read_bytes()[:5000])
    with pytest.raises(DocumentInvalid, match="damaged"):
        read_instance(cut)
    with pytest.raises(NotFound):
        read_instance(tmp_path / "nowhere.json")


def test_the_command_prints_the_whole_answer() -> None:
    ran = run_here("shard", "--instance", str(SAMPLE), "-o", "json")
    assert ran.exit_code == 0, ran.stderr
    data = ran.json()
    assert (data["status"], data["cost"], data["bound"], data["gap"]) == ("optimal", 217_039, 217_039, 0.0)
    assert len(data["choice"]) == 816
    assert data["trace"][-1]["bound"] == 217_039
    assert data["wall_s"] >= data["trace"][-1]["wall_s"]
    assert "217,039" in run_here("shard", "--instance", str(SAMPLE)).stdout


def test_a_binding_window_exits_5(tmp_path: Path) -> None:
    document = small()
    document["problem"]["usage_limit"] = 2
    ran = run_here("shard", "--instance", str(written(tmp_path, document)), "-o", "json")
    assert ran.exit_code == 5
    assert "from time 1 until before 3 at least 3 is needed" in ran.error()["what"]


def test_nodes_that_contradict_exit_5(tmp_path: Path) -> None:
    document = small()
    document["problem"]["edges"]["costs"][1] = [10**18, 10**18]
    ran = run_here("shard", "--instance", str(written(tmp_path, document)), "-o", "json")
    assert ran.exit_code == 5
    assert "node 1" in ran.error()["what"]
    assert "node 2" in ran.error()["what"]


def test_bad_input_exits_2_and_no_file_exits_3(tmp_path: Path) -> None:
    assert run_here("shard", "--instance", str(written(tmp_path, "{"))).exit_code == 2
    assert run_here("shard", "--instance", str(tmp_path / "nowhere")).exit_code == 3
