"""GPCNeT: MiB/s for one rank, usec, and what runs under congestion."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.gpcnet import FORMAT
from tests.attributes import of
from tests.importing import read, read_anyway, sample, written

HEAD = "Network Load Tests v1.3\n  Test with 640 MPI ranks (10 nodes)\n\n"


def table(title: str, *rows: str) -> str:
    return f"+----+\n|      {title}      |\n+----+\n|  Name |  Avg | 99% | Units |\n" + "\n".join(rows) + "\n"


def test_real_isolated_tests() -> None:
    imported = read(FORMAT, sample("p2p/superbench_gpcnet_network_test.log"))
    batch = imported.batches[0]
    assert of(imported, "tool_version", "facts") == ["1.3", {"num_ranks": 2}]
    assert of(batch.environment, "num_nodes", "communication_library") == [2, "mpi"]
    assert len(batch.links) == 7
    assert of(batch.links[0], "latency_s", "size_bytes", "row") == [pytest.approx(0.01), 8, 15]
    # 10,000 MiB/s = 10,000 x 1,048,576 B/s.
    assert of(batch.links[2], "bandwidth_bytes_per_s", "size_bytes") == [10_485_760_000.0, 131072]
    (collective,) = batch.collectives
    assert of(collective, "operation", "size_bytes", "group_size") == ["all_reduce", 8, None]
    assert [flag.code for flag in imported.flags] == ["group-size-unknown"]


def test_congested_tables_and_impact_factors(tmp_path: Path) -> None:
    text = (
        HEAD
        + table("Isolated Network Tests", "| RR Two-sided BW+Sync (131072 B) | 3786.1 | 485.1 | MiB/s/rank |")
        + table("Isolated Congestion Tests", "| Alltoall (4096 B) | 100.0 | 90.0 | MiB/s/rank |")
        + table("Network Tests running with Congestion Tests ( RR Two-sided Lat Network Test)",
                "| RR Two-sided Lat (8 B) | 4.4 | 5.4 | usec |")
        + table("Network Tests running with Congestion Tests - Key Results", "| RR Two-sided Lat (8 B) | 1.3X | 2.1X |")
    )  # fmt: skip
    imported = read(FORMAT, written(tmp_path, "g.log", text))
    alone, loaded = imported.batches[0].links
    assert of(alone, "detail.[congested]", "detail.[p99_bytes_per_s]") == [False, pytest.approx(485.1 * 1048576)]
    assert of(loaded, "detail.[congested]", "latency_s") == [True, pytest.approx(4.4e-6)]
    assert imported.skipped == {"impact factors and congestors": 2}


def test_load_tests_have_more_columns(tmp_path: Path) -> None:
    text = HEAD.replace("Network Load", "NetworkLoad") + (
        "|  Network Tests running with Congestion Tests (  Multiple Allreduce Network Test)  |\n"
        "|   Name |  Min |  Max |  Avg |   Avg(Worst) |  99% |  99.9% |  Units |\n"
        "| Multiple Allreduce (8 B) | 20.0 | 90.0 | 25.3 | 26.0 | 27.7 | 80.0 | usec |\n"
        "| Two-sided Incast (4096 B) | 1.0 | 1.0 | 1.0 | 1.0 | 1.0 | 1.0 | MiB/s/rank |\n"
    )
    imported = read(FORMAT, written(tmp_path, "g.log", text), given={"group_size": "8"})
    (row,) = imported.batches[0].collectives
    assert of(row, "timing.time_s", "detail.[p99_s]", "group_size") == [
        pytest.approx(25.3e-6), pytest.approx(27.7e-6), 8,
    ]  # fmt: skip
    assert row.detail["congested"] is True
    assert imported.skipped == {"impact factors and congestors": 1}


@pytest.mark.parametrize("cells", ["nan | 1.0 | usec", "1.0 | 1.0 | GB/s", "1.0 | usec", "-1.0 | 1.0 | usec"])
def test_broken_rows(tmp_path: Path, cells: str) -> None:
    text = HEAD + table(
        "Isolated Network Tests", "| RR Get Lat (8 B) | 4.4 | 5.4 | usec |", f"| RR Put BW (8 B) | {cells} |"
    )
    imported = read(FORMAT, written(tmp_path, "g.log", text))
    assert len(imported.bad_rows) == 1
    assert len(imported.batches[0].links) == 1


def test_nothing_usable_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentInvalid):
        read(FORMAT, written(tmp_path, "g.log", HEAD))
    with pytest.raises(DocumentInvalid):
        read_anyway(FORMAT, [written(tmp_path, "h.log", "x\n")])
